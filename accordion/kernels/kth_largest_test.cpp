// The k-th largest magnitude, on every instruction set this machine has, against sorting.
#include "accordion/kernels/kth_largest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "accordion/base/noise_testing.h"
#include "accordion/kernels/targets_testing.h"

namespace accordion::kernels {
namespace {

class KthLargest : public EachTarget {};

void expect_as_sorted(Sum a, std::size_t every) {
  std::vector<Magnitude> sorted;
  for (std::size_t i = 0; i < a.size(); ++i) sorted.push_back(magnitude(a[i]));
  std::sort(sorted.rbegin(), sorted.rend());
  for (std::size_t k = 1; k <= a.size(); k += k < 10 ? 1 : every) {
    const auto [first, last] =
        std::equal_range(sorted.begin(), sorted.end(), sorted[k - 1], std::greater<>());
    const Kth kth = kth_largest(a, k);
    ASSERT_EQ(kth.value, sorted[k - 1]) << k << " of " << a.size();
    ASSERT_EQ(kth.above, first - sorted.begin());
    ASSERT_EQ(kth.equal, last - first);
  }
}

TEST_P(KthLargest, IsWhatSortingGives) {
  for (std::size_t n : {1000, 3000, 8192, 20011}) {
    std::vector<float> x = heavy_tailed(n, 5, 3), y = heavy_tailed(n, 6, 3);
    expect_as_sorted({x, y}, n / 50);
    for (std::size_t i = 0; i < n / 3; ++i)
      x[i] = i % 3 == 0 ? 0.0f : i % 3 == 1 ? -1.0f : 1e-40f;  // Ties, denormals.
    expect_as_sorted({x}, n / 300);
    std::fill(x.begin(), x.end(), -3.0f);
    expect_as_sorted({x}, n / 10);
  }
}

// All the large entries are where a sample of even distances looks, or none.
TEST_P(KthLargest, SurvivesASampleThatMisleads) {
  for (bool sampled : {true, false}) {
    std::vector<float> x = noise(16384, 7);
    for (std::size_t i = 0; i < x.size(); ++i)
      if ((i % 16 == 0) == sampled) x[i] *= 1000;
    expect_as_sorted({x}, 333);
  }
}

ACCORDION_ON_EACH_TARGET(KthLargest);

}  // namespace
}  // namespace accordion::kernels
