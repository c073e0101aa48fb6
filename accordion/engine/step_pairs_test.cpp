#include "accordion/engine/step_pairs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace accordion {
namespace {

TEST(StepPairs, TooFewHaveNoInterval) {
  StepPairs pairs;
  EXPECT_EQ(pairs.longer().value, 1);
  for (int k = 0; k < 5; ++k) pairs.add(1.1, 1);
  EXPECT_NEAR(pairs.longer().value, 1.1, 1e-12);
  EXPECT_EQ(pairs.longer().low, 0);
  EXPECT_TRUE(std::isinf(pairs.longer().high));
  pairs.add(1.1, 1);
  EXPECT_NEAR(pairs.longer().low, 1.1, 1e-12);
  EXPECT_NEAR(pairs.longer().high, 1.1, 1e-12);
  pairs.add(0, 1);
  pairs.add(1, 0);
  EXPECT_EQ(pairs.count(), 6u) << "a time that is none";
}

// Of six pairs the interval reaches from the least to the most; of ten, by the table of Wilcoxon's test, from the eighth mean to the
// eighth from above.
TEST(StepPairs, IntervalsAreWilcoxons) {
  StepPairs six, ten;
  for (int k = 1; k <= 10; ++k) {
    const double longer = std::exp(0.01 * k * k);
    if (k <= 6) six.add(longer, 1);
    ten.add(longer, 1);
  }
  EXPECT_NEAR(std::log(six.longer().low), 0.01, 1e-12);
  EXPECT_NEAR(std::log(six.longer().high), 0.36, 1e-12);
  EXPECT_NEAR(std::log(ten.longer().low), 0.10, 1e-12);
  EXPECT_NEAR(std::log(ten.longer().high), 0.65, 1e-12);
}

// Also where noise has long tails, or lasts for longer than a pair.
TEST(StepPairs, IntervalsHoldTheTruth) {
  std::mt19937 random(1);
  std::student_t_distribution<double> noise(3);
  int missed = 0, told = 0;
  for (int run = 0; run < 1000; ++run) {
    StepPairs pairs;
    double drift = 0;
    for (int k = 0; k < 16; ++k) {
      drift += 0.2 * noise(random);
      pairs.add(std::exp(0.05 + drift + 0.02 * noise(random)), std::exp(drift + 0.02 * noise(random)));
    }
    const Longer longer = pairs.longer();
    missed += longer.low > std::exp(0.05) || longer.high < std::exp(0.05);
    told += longer.low > 1;
  }
  EXPECT_LE(missed, 80);
  EXPECT_GE(told, 900);
}

TEST(StepPairs, OldOnesAreForgotten) {
  StepPairs pairs;
  for (int k = 0; k < 1000; ++k) pairs.add(2, 1);
  for (int k = 0; k < 140; ++k) pairs.add(1, 1);
  EXPECT_NEAR(pairs.longer().value, 1, 1e-12);
}

}  // namespace
}  // namespace accordion
