#include "accordion/report/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace accordion {
namespace {

TEST(StudentT, AgreesWithPrintedTables) {
  const std::pair<int, double> printed[] = {{1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},
                                            {9, 2.262},  {10, 2.228}, {29, 2.045}, {30, 2.042}, {120, 1.980}};
  for (const auto& [degrees, t] : printed) EXPECT_NEAR(student_t95(degrees), t, 5e-4) << degrees;
}

TEST(StudentT, FallsTowardsTheNormal) {
  for (int degrees = 1; degrees < 200; ++degrees)
    EXPECT_GT(student_t95(degrees), student_t95(degrees + 1)) << degrees;
  EXPECT_NEAR(student_t95(100'000), 1.95996, 1e-4);
}

TEST(MeanInterval, OfThreeSeeds) {
  const std::vector<double> values = {94.1, 94.5, 94.6};
  const MeanInterval interval = mean_interval(values);
  EXPECT_NEAR(interval.mean, 94.4, 1e-12);
  // Squares of the deviations -0.3, 0.1, 0.2 add up to 0.14.
  EXPECT_NEAR(*interval.normal95, 1.96 * std::sqrt(0.14 / 3) / std::sqrt(3), 1e-12);
  EXPECT_NEAR(*interval.student95, 4.30265 * std::sqrt(0.14 / 2) / std::sqrt(3), 1e-5);
}

TEST(MeanInterval, OneRunHasNoInterval) {
  const std::vector<double> values = {0.9};
  EXPECT_EQ(mean_interval(values).mean, 0.9);
  EXPECT_FALSE(mean_interval(values).normal95);
  EXPECT_FALSE(mean_interval(values).student95);
}

TEST(MeanInterval, EqualRunsHaveNoWidth) {
  const std::vector<double> values = {0.5, 0.5, 0.5, 0.5};
  EXPECT_EQ(*mean_interval(values).normal95, 0);
  EXPECT_EQ(*mean_interval(values).student95, 0);
}

}  // namespace
}  // namespace accordion
