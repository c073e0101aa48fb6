#include <gtest/gtest.h>

#include "accordion/base/error.h"
#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace accordion {
namespace {

constexpr InputShape kCifar10{3, 32, 32, 10}, kCifar100{3, 32, 32, 100}, kMnist{1, 28, 28, 10};

std::int64_t parameters(const std::string& name, const InputShape& input) {
  std::int64_t count = 0;
  for (const auto& parameter : make_model(name, input)->parameters()) count += parameter.numel();
  return count;
}

TEST(Models, HaveThePublishedParameterCounts) {
  EXPECT_EQ(parameters("resnet18", kCifar10), 11173962);
  EXPECT_EQ(parameters("resnet18", kCifar100), 11220132);
  EXPECT_NEAR(static_cast<double>(parameters("resnet20", kCifar10)), 0.27e6, 0.005e6);
  EXPECT_EQ(parameters("cnn", kMnist), 220234);
}

TEST(Models, GiveScoresAndAGradientToEveryParameter) {
  torch::manual_seed(1);
  for (const std::string& name : model_names())
    for (const InputShape& input : {kMnist, kCifar10}) {
      auto model = make_model(name, input);
      const auto scores = model->forward(torch::randn({2, input.channels, input.height, input.width}));
      ASSERT_EQ(scores.sizes(), (std::vector<std::int64_t>{2, input.classes})) << name;
      torch::nn::functional::cross_entropy(scores, torch::tensor({1, 2})).backward();
      for (const auto& parameter : model->named_parameters()) {
        ASSERT_TRUE(parameter.value().grad().defined()) << name << " " << parameter.key();
        EXPECT_GT(parameter.value().grad().abs().max().item<float>(), 0) << name << " " << parameter.key();
      }
    }
}

TEST(Models, AnUnknownNameIsMetWithTheNearest) {
  try {
    make_model("resnet81", kMnist);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "unknown model \"resnet81\"; did you mean \"resnet18\"? There are: cnn, resnet18, resnet20");
  }
}

}  // namespace
}  // namespace accordion
