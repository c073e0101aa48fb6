// Every model, narrow, learns 32 images, windows of text or rows by heart, and does so the same way every
// time.
#include <gtest/gtest.h>

#include "accordion/models/models_testing.h"

namespace accordion {
namespace {

constexpr ImageShape kImages{3, 16, 16, 10};
constexpr TextShape kText{40};
const TableShape kTable{5, {40, 20, 3}};

struct Learnt {
  std::shared_ptr<Network> model;
  double first_loss = 0, last_loss = 0;
  bool all_right = false;
};

Learnt learn(const std::string& setting, const InputShape& input, int steps, std::uint64_t seed) {
  torch::manual_seed(seed);
  Learnt result{.model = make_model(setting, input)};
  Network& model = *result.model;
  for (const auto& module : model.modules())  // Dropout is there to prevent just this.
    if (module->as<torch::nn::Dropout>()) module->eval();
  const MadeUpBatch batch = made_up(input, 32);
  torch::optim::Adam optimizer(model.parameters(), torch::optim::AdamOptions(3e-3));
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const auto loss = loss_of(model, batch);
    if (step == 0) result.first_loss = loss.item<double>();
    loss.backward();
    optimizer.step();
  }
  const torch::NoGradGuard no_grad;
  result.last_loss = loss_of(model, batch).item<double>();
  model.forget();
  result.all_right = torch::equal(model.forward(batch.input).argmax(1), batch.targets);
  return result;
}

void learns_by_heart(const std::string& setting, int steps, const InputShape& input = kImages) {
  const Learnt learnt = learn(setting, input, steps, 5);
  EXPECT_NEAR(learnt.first_loss, std::log(choices(input)), 1) << setting;
  EXPECT_LT(learnt.last_loss, 0.3) << setting;
  EXPECT_TRUE(learnt.all_right) << setting;
}

TEST(Learning, Cnn) {
  learns_by_heart("cnn:width=0.5", 40);
}
TEST(Learning, DenseNet) {
  learns_by_heart("densenet:width=0.25", 30);
}
TEST(Learning, Dlrm) {
  learns_by_heart("dlrm:embedding=8", 150, kTable);
}
TEST(Learning, GoogLeNet) {
  learns_by_heart("googlenet:width=0.0625", 40);
}
TEST(Learning, Gpt) {
  learns_by_heart("gpt:layers=2,width=48,context=8", 150, kText);
}
TEST(Learning, Lstm) {
  learns_by_heart("lstm:layers=2,hidden=48,dropout=0", 250, kText);
}
TEST(Learning, ResNet18) {
  learns_by_heart("resnet18:width=0.125", 30);
}
TEST(Learning, ResNet20) {
  learns_by_heart("resnet20:width=0.5", 30);
}
TEST(Learning, SeNet) {
  learns_by_heart("senet:width=0.125", 30);
}
TEST(Learning, SeResNet18) {
  learns_by_heart("seresnet18:width=0.125", 30);
}
TEST(Learning, Vgg19Bn) {
  learns_by_heart("vgg19bn:width=0.125", 60);
}
TEST(Learning, WideResNet) {
  learns_by_heart("wideresnet:width=0.05", 50);
}

bool same(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto equal = [](const std::vector<torch::Tensor>& x, const std::vector<torch::Tensor>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const torch::Tensor& s, const torch::Tensor& t) { return torch::equal(s, t); });
  };
  return equal(a.parameters(), b.parameters()) && equal(a.buffers(), b.buffers());
}

TEST(Learning, IsTheSameWithTheSameSeed) {
  for (const auto& [name, setting, input] : tiny_models(kImages, 0.05))
    for (const int steps : {0, 2}) {
      const Learnt once = learn(setting, input, steps, 5);
      EXPECT_TRUE(same(*once.model, *learn(setting, input, steps, 5).model))
          << name << " after " << steps << " steps";
      EXPECT_FALSE(same(*once.model, *learn(setting, input, steps, 6).model))
          << name << " after " << steps << " steps";
    }
}

}  // namespace
}  // namespace accordion
