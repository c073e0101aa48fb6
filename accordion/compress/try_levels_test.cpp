#include "accordion/compress/try_levels.h"

#include <gtest/gtest.h>

#include <cmath>

#include "accordion/base/noise_testing.h"
#include "accordion/kernels/dense.h"

namespace accordion {
namespace {

std::vector<CodecOptions> levels(const std::vector<std::string>& settings) {
  std::vector<CodecOptions> result;
  for (const std::string& setting : settings) result.push_back(parse_codec(setting));
  return result;
}

std::vector<Trial> tried(std::span<const float> gradient, const Shape& shape,
                         const std::vector<std::string>& settings,
                         LowRankError method = LowRankError::kPowerSteps) {
  return try_levels(gradient, shape, levels(settings), 4, {}, method);
}

TEST(Trial, TopKLosesTheSmallEntries) {
  std::vector<float> gradient(2000);
  double small = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = i % 20 == 0 ? 10.0f : 0.25f;
    small += i % 20 == 0 ? 0 : 0.0625;
  }
  const auto result = tried(gradient, {{40, 50}}, {"none", "topk:keep=0.05", "topk:keep=0.025"});
  ASSERT_EQ(result.size(), 3u);
  EXPECT_EQ(result[0].error, 0);
  EXPECT_EQ(result[0].bytes, 8000);
  EXPECT_NEAR(result[1].error, small, 1e-9);
  EXPECT_NEAR(result[2].error, small + 50 * 100, 1e-6);
  EXPECT_EQ(result[2].bytes, 50 * 8);
}

// The prefix sums say what the codec itself would lose.
TEST(Trial, TopKAgreesWithTheCodec) {
  const auto gradient = heavy_tailed(3000, 5);
  const auto sorted = tried(gradient, {{30, 100}}, {"topk:keep=0.01", "topk:keep=0.1"});
  const auto run = tried(gradient, {{30, 100}}, {"mstopk:keep=0.01", "mstopk:keep=0.1"});
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(run[i].error / sorted[i].error, 1, 1e-6) << i;
}

// A matrix of known singular values: rank one matrices on orthogonal axes.
TEST(Trial, LowRankErrorsAreTheSpectrumsTails) {
  const Shape shape{{40, 60}};
  std::vector<float> gradient(40 * 60, 0.0f);
  const double sigma[] = {9, 5, 3, 1};
  for (std::size_t i = 0; i < 4; ++i) gradient[i * 7 * 60 + i * 11] = static_cast<float>(sigma[i]);
  for (const auto method : {LowRankError::kPowerSteps, LowRankError::kSingularValues}) {
    const auto result =
        tried(gradient, shape, {"powersgd:approx-rank=3", "powersgd:approx-rank=2", "powersgd:approx-rank=1"},
              method);
    ASSERT_EQ(result.size(), 3u);
    EXPECT_NEAR(result[0].error, 1, 0.02);
    EXPECT_NEAR(result[1].error, 1 + 9, 0.2);
    EXPECT_NEAR(result[2].error, 1 + 9 + 25, 0.5);
    EXPECT_EQ(result[2].bytes, 400);
  }
}

TEST(Trial, PowerStepsComeCloseToTheBestOnNoiseAndNeverBelowIt) {
  const auto gradient = noise(64 * 48, 3);
  const std::vector<std::string> ranks = {"powersgd:approx-rank=4", "powersgd:approx-rank=1"};
  const auto steps = tried(gradient, {{64, 48}}, ranks);
  const auto best = tried(gradient, {{64, 48}}, ranks, LowRankError::kSingularValues);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_GE(steps[i].error, 0.9999 * best[i].error);
    EXPECT_LE(steps[i].error, 1.06 * best[i].error);
  }
}

TEST(Trial, EveryCodecCanBeTried) {
  const auto gradient = noise(64 * 64, 7);
  for (const std::string& name : codec_names()) {
    const auto result = tried(gradient, {{64, 64}}, {name, "topk"});
    ASSERT_EQ(result.size(), 2u) << name;
    EXPECT_TRUE(std::isfinite(result[0].error)) << name;
    EXPECT_GT(result[0].bytes, 0) << name;
    // A vote has a length of its own, and triplets that are kept are made longer.
    if (name == "sign-vote" || name == "atomo") continue;
    EXPECT_LE(result[0].error, 1.1 * kernels::sum_of_squares(gradient)) << name;
  }
}

TEST(Trial, WhatGoesDenseHasNone) {
  EXPECT_TRUE(tried(noise(64, 1), {{64}}, {"topk", "powersgd"}).empty());
  EXPECT_TRUE(tried(noise(100, 1), {{10, 10}}, {"topk"}).empty());
  const auto mixed = tried(noise(4096, 1), {{64, 64}}, {"powersgd:approx-rank=40", "powersgd:approx-rank=1"});
  EXPECT_EQ(mixed[0].error, 0) << "a level that is not worth it sends everything";
  EXPECT_EQ(mixed[0].bytes, 4096 * 4);
}

TEST(Trial, OfWhatIsNotFiniteIsNotEither) {
  auto gradient = noise(4096, 1);
  gradient[5] = std::nanf("");
  for (const Trial& trial : tried(gradient, {{64, 64}}, {"topk", "powersgd:approx-rank=1", "qsgd"}))
    EXPECT_TRUE(std::isnan(trial.error));
}

}  // namespace
}  // namespace accordion
