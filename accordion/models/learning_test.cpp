// Every model, narrow and on small images, learns 32 of them by heart, and does so the same way every time.
#include <gtest/gtest.h>

#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace accordion {
namespace {

constexpr ImageShape kInput{3, 16, 16, 10};

struct Learnt {
  std::shared_ptr<Network> model;
  double first_loss = 0, last_loss = 0;
  int right = 0;
};

Learnt learn(const std::string& setting, int steps, std::uint64_t seed) {
  torch::manual_seed(seed);
  Learnt result{.model = make_model(setting, kInput)};
  Network& model = *result.model;
  for (const auto& module : model.modules())  // Dropout is there to prevent just this.
    if (module->as<torch::nn::Dropout>()) module->eval();
  const auto images = torch::randn({32, kInput.channels, kInput.height, kInput.width});
  const auto labels = torch::randint(kInput.classes, {32}, torch::kLong);
  torch::optim::Adam optimizer(model.parameters(), torch::optim::AdamOptions(3e-3));
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const auto loss = torch::nn::functional::cross_entropy(model.forward(images), labels);
    if (step == 0) result.first_loss = loss.item<double>();
    loss.backward();
    optimizer.step();
  }
  const torch::NoGradGuard no_grad;
  const auto scores = model.forward(images);
  result.last_loss = torch::nn::functional::cross_entropy(scores, labels).item<double>();
  result.right = (scores.argmax(1) == labels).sum().item<int>();
  return result;
}

void learns_by_heart(const std::string& setting, int steps) {
  const Learnt learnt = learn(setting, steps, 5);
  EXPECT_NEAR(learnt.first_loss, std::log(kInput.classes), 1) << setting;
  EXPECT_LT(learnt.last_loss, 0.3) << setting;
  EXPECT_EQ(learnt.right, 32) << setting;
}

TEST(Learning, Cnn) {
  learns_by_heart("cnn:width=0.5", 40);
}
TEST(Learning, DenseNet) {
  learns_by_heart("densenet:width=0.25", 30);
}
TEST(Learning, GoogLeNet) {
  learns_by_heart("googlenet:width=0.0625", 40);
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
  for (const std::string& name : model_names()) {
    const std::string setting = name + ":width=0.05";
    for (const int steps : {0, 2}) {
      const Learnt once = learn(setting, steps, 5);
      EXPECT_TRUE(same(*once.model, *learn(setting, steps, 5).model))
          << name << " after " << steps << " steps";
      EXPECT_FALSE(same(*once.model, *learn(setting, steps, 6).model))
          << name << " after " << steps << " steps";
    }
  }
}

}  // namespace
}  // namespace accordion
