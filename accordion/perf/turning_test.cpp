#include "accordion/perf/turning.h"

#include <gtest/gtest.h>

namespace accordion::perf {
namespace {

TEST(TurningPoints, AreFound) {
  const auto turns = turning_points([](double x) { return (x - 3) * (x - 70) * (x - 71000); }, {0.1, 1e5});
  ASSERT_EQ(turns.size(), 3u);
  EXPECT_NEAR(turns[0], 3, 1e-8);
  EXPECT_NEAR(turns[1], 70, 1e-6);
  EXPECT_NEAR(turns[2], 71000, 1e-3);
}

TEST(TurningPoints, NoneWhereNothingTurns) {
  EXPECT_TRUE(turning_points([](double x) { return x + 1; }, {0.1, 1e5}).empty());
  EXPECT_TRUE(turning_points([](double) { return 0; }, {0.1, 1e5}).empty());
}

TEST(LogGrid, HasEqualRatiosAndBothEnds) {
  const std::vector<double> grid = log_grid({0.1, 100}, 4);
  ASSERT_EQ(grid.size(), 4u);
  EXPECT_DOUBLE_EQ(grid[0], 0.1);
  EXPECT_DOUBLE_EQ(grid[1], 1);
  EXPECT_DOUBLE_EQ(grid[3], 100);
  EXPECT_EQ(log_grid({5, 7}, 1), std::vector<double>{5});
}

}  // namespace
}  // namespace accordion::perf
