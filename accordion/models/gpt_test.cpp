#include "accordion/models/gpt.h"

#include <gtest/gtest.h>

#include "accordion/base/error.h"
#include "accordion/models/describe.h"
#include "accordion/models/models_testing.h"
#include "accordion/run/shapes.h"

namespace accordion {
namespace {

constexpr TextShape kGptText{30};
constexpr GptOptions kSmallGpt{.layers = 2, .heads = 2, .width = 16, .context = 12, .dropout = 0.5};

TEST(Gpt, HasAsManyParametersAsItsFormulaSays) {
  for (const int layers : {1, 4})
    for (const int width : {8, 128})
      for (const int context : {1, 128})
        for (const int vocabulary : {2, 33278}) {
          const auto setting = "gpt:layers=" + std::to_string(layers) + ",width=" + std::to_string(width) +
                               ",context=" + std::to_string(context);
          EXPECT_EQ(parameter_count(model_tensors(setting, TextShape{vocabulary})),
                    static_cast<std::size_t>((vocabulary + context) * width +
                                             layers * (12 * width * width + 13 * width) + 2 * width))
              << setting;
        }
}

TEST(Gpt, SeesNoLaterToken) {
  torch::manual_seed(4);
  const auto model = make(kSmallGpt, kGptText);
  model->eval();
  const torch::NoGradGuard no_grad;
  const auto scores = [&](const torch::Tensor& tokens) {
    return model->forward(tokens).view({2, 12, kGptText.vocabulary});
  };
  const torch::Tensor tokens = torch::randint(kGptText.vocabulary, {2, 12}, torch::kLong);
  const torch::Tensor before = scores(tokens);
  for (int position = 0; position < 12; ++position) {
    torch::Tensor changed = tokens.clone();
    changed[0][position] = (changed[0][position] + 1) % kGptText.vocabulary;
    const torch::Tensor difference = (scores(changed) - before).abs().amax(2);
    EXPECT_EQ(difference[1].max().item<double>(), 0) << "the other stream";
    if (position > 0) {
      EXPECT_LT(difference[0].narrow(0, 0, position).max().item<double>(), 1e-6);
    }
    EXPECT_GT(difference[0].narrow(0, position, 12 - position).min().item<double>(), 1e-5)
        << "this one and all after it";
  }
}

// The same token twice: only its place can tell the two apart.
TEST(Gpt, KnowsWhereATokenStands) {
  torch::manual_seed(4);
  const auto model = make(kSmallGpt, kGptText);
  model->eval();
  const torch::NoGradGuard no_grad;
  const torch::Tensor scores = model->forward(torch::full({1, 2}, 7, torch::kLong));
  EXPECT_GT((scores[0] - scores[1]).abs().max().item<double>(), 1e-4);
}

TEST(Gpt, StartsAsItsPredecessorsDid) {
  torch::manual_seed(1);
  const auto model = make(GptOptions{}, TextShape{1000});
  for (const auto& parameter : model->named_parameters()) {
    const torch::Tensor& values = parameter.value();
    const std::string& name = parameter.key();
    if (name.ends_with("bias")) {
      EXPECT_EQ(values.abs().max().item<double>(), 0) << name;
    } else if (name.find("norm") != std::string::npos) {
      EXPECT_TRUE(torch::equal(values, torch::ones_like(values))) << name;
    } else {
      const bool last = name.ends_with("mixed.weight") || name.ends_with("down.weight");
      const double deviation = last ? 0.02 / std::sqrt(8.0) : 0.02;
      EXPECT_NEAR(values.std().item<double>(), deviation, 0.03 * deviation) << name;
    }
  }
}

TEST(Gpt, RefusesHeadsOfUnequalWidthAndWindowsBeyondItsContext) {
  const auto refusal = [](auto&& attempt) -> std::string {
    try {
      attempt();
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal([] { check_model("gpt:heads=3", kGptText); }),
            "gpt: heads=3, expected a divisor of width=128");
  EXPECT_THROW(make(GptOptions{.heads = 3}, kGptText), UsageError);
  const auto model = make(kSmallGpt, kGptText);
  const auto window = [&](int positions) {
    return refusal([&] { model->forward(torch::zeros({1, positions}, torch::kLong)); });
  };
  EXPECT_EQ(window(12), "");
  EXPECT_EQ(window(13), "gpt: a window of 13 tokens, expected at most context=12");
}

}  // namespace
}  // namespace accordion
