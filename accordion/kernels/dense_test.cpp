// Every kernel, on every instruction set this machine has, against its plain loop.
#include "accordion/kernels/dense.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "accordion/base/noise_testing.h"
#include "accordion/kernels/targets_testing.h"

namespace accordion::kernels {
namespace {

class DenseKernels : public EachTarget {};

TEST_P(DenseKernels, MatchTheReference) {
  for (std::size_t n : {0, 1, 3, 7, 8, 15, 16, 17, 31, 32, 33, 1000, 4099}) {
    // Offset by one element, so that nothing may rely on alignment.
    const std::vector<float> x = heavy_tailed(n + 1, 1, 3), y = heavy_tailed(n + 1, 2, 3);
    const std::span<const float> view = std::span(x).subspan(1);

    std::vector<float> fast = y, slow = y;
    add(view, std::span(fast).subspan(1));
    reference::add(view, std::span(slow).subspan(1));
    EXPECT_EQ(fast, slow) << n;

    scale(std::span(fast).subspan(1), 0.3f);
    reference::scale(std::span(slow).subspan(1), 0.3f);
    EXPECT_EQ(fast, slow) << n;

    const double expected = reference::sum_of_squares(view);
    EXPECT_NEAR(sum_of_squares(view), expected, 1e-12 * expected) << n;
  }
}

TEST_P(DenseKernels, CarryNonFiniteValuesThrough) {
  std::vector<float> x(50, 1.0f);
  x[37] = std::nanf("");
  EXPECT_TRUE(std::isnan(sum_of_squares(x)));
  scale(x, 0.0f);
  EXPECT_TRUE(std::isnan(x[37]));
}

ACCORDION_ON_EACH_TARGET(DenseKernels);

}  // namespace
}  // namespace accordion::kernels
