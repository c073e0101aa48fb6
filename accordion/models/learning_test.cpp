// Every model, narrow, learns 32 images, windows of text or rows by heart, and does so the same way every
// time.
#include <gtest/gtest.h>

#include "accordion/models/models_testing.h"

namespace accordion {
namespace {

constexpr ImageShape kImages{3, 16, 16, 10};
constexpr TextShape kLearnedText{40};
const TableShape kLearnedTable{5, {40, 20, 3}};

TEST(Learning, Cnn) {
  learns_by_heart("cnn:width=0.5", kImages, 40);
}
TEST(Learning, DenseNet) {
  learns_by_heart("densenet:width=0.25", kImages, 30);
}
TEST(Learning, Dlrm) {
  learns_by_heart("dlrm:embedding=8", kLearnedTable, 150);
}
TEST(Learning, GoogLeNet) {
  learns_by_heart("googlenet:width=0.0625", kImages, 40);
}
TEST(Learning, Gpt) {
  learns_by_heart("gpt:layers=2,width=48,context=8", kLearnedText, 150);
}
TEST(Learning, Lstm) {
  learns_by_heart("lstm:layers=2,hidden=48,dropout=0", kLearnedText, 250);
}
TEST(Learning, ResNet18) {
  learns_by_heart("resnet18:width=0.125", kImages, 30);
}
TEST(Learning, ResNet20) {
  learns_by_heart("resnet20:width=0.5", kImages, 30);
}
TEST(Learning, SeNet) {
  learns_by_heart("senet:width=0.125", kImages, 30);
}
TEST(Learning, SeResNet18) {
  learns_by_heart("seresnet18:width=0.125", kImages, 30);
}
TEST(Learning, Vgg19Bn) {
  learns_by_heart("vgg19bn:width=0.125", kImages, 60);
}
TEST(Learning, WideResNet) {
  learns_by_heart("wideresnet:width=0.05", kImages, 50);
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
