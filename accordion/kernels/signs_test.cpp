// Every kernel, on every instruction set this machine has, gives the bits of its plain loop.
#include "accordion/kernels/signs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "accordion/base/noise_testing.h"
#include "accordion/kernels/targets_testing.h"

namespace accordion::kernels {
namespace {

class SignKernels : public EachTarget {};

TEST_P(SignKernels, MatchTheReference) {
  for (std::size_t n : {0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 1000}) {
    std::vector<float> g = heavy_tailed(n + 1, 1, 3), e = heavy_tailed(n + 1, 2, 3);
    if (n > 7) g[3] = e[3] = 0, g[4] = e[4] = -0.0f;
    const std::span<const float> gradient = std::span(g).subspan(1), residual = std::span(e).subspan(1);
    for (const auto& memory : {residual, std::span<const float>()}) {
      std::vector<std::uint32_t> fast(sign_words(n), 77), slow = fast;
      const Magnitudes a = measure_signs(gradient, memory, fast),
                       b = reference::measure_signs(gradient, memory, slow);
      EXPECT_EQ(fast, slow) << n;
      EXPECT_EQ(a.sum, b.sum) << n;
      EXPECT_EQ(a.largest, b.largest) << n;
      std::fill(fast.begin(), fast.end(), 78);
      EXPECT_EQ(pack_signs(gradient, memory, fast), b.largest) << n;
      EXPECT_EQ(fast, slow) << n;

      std::vector<float> next(n), expected(n);
      subtract_signs(gradient, memory, 0.7f, next);
      reference::subtract_signs(gradient, memory, 0.7f, expected);
      EXPECT_EQ(next, expected) << n;
    }
  }
}

// Large ones are written past the caches, which needs aligned addresses.
TEST_P(SignKernels, SubtractFromLargeOnes) {
  const std::size_t n = (std::size_t{1} << 18) + 77;
  const std::vector<float> gradient = heavy_tailed(n, 1, 3), residual = heavy_tailed(n, 2, 3);
  std::vector<float> next(n + 4, 9), expected(n + 4, 9);
  for (std::size_t first : {0, 1, 3}) {
    subtract_signs(gradient, residual, 0.7f, std::span(next).subspan(first, n));
    reference::subtract_signs(gradient, residual, 0.7f, std::span(expected).subspan(first, n));
    EXPECT_EQ(next, expected) << first;
  }
}

TEST_P(SignKernels, CountAndSumLikeTheReference) {
  std::mt19937 generator(5);
  for (std::size_t ranks : {0, 1, 2, 3, 4, 7, 8, 64})
    for (std::size_t n : {0, 1, 31, 33, 256, 700}) {
      std::vector<std::vector<std::uint32_t>> words(ranks, std::vector<std::uint32_t>(sign_words(n)));
      std::vector<Signs> signs;
      for (auto& list : words) {
        for (auto& word : list) word = generator();
        signs.push_back({list.data(), 0.01f * static_cast<float>(generator() % 1000)});
      }
      std::vector<float> fast(n, 9), slow(n, 8);
      count_votes(signs, fast);
      reference::count_votes(signs, slow);
      EXPECT_EQ(fast, slow) << ranks << " ranks, n = " << n;
      sum_signs(signs, fast);
      reference::sum_signs(signs, slow);
      EXPECT_EQ(fast, slow) << ranks << " ranks, n = " << n;
    }
}

TEST_P(SignKernels, SeeWhatIsNotFiniteAndWhatIsZero) {
  std::vector<std::uint32_t> words(2);
  for (float odd : {std::nanf(""), -std::nanf(""), HUGE_VALF, -HUGE_VALF})
    for (std::size_t at : {0, 31, 40}) {
      std::vector<float> x(41, 1.0f);
      x[at] = odd;
      EXPECT_FALSE(std::isfinite(pack_signs(x, {}, words)));
      EXPECT_FALSE(std::isfinite(measure_signs(x, {}, words).largest));
    }
  const std::vector<float> zero(41, -0.0f);
  EXPECT_EQ(pack_signs(zero, {}, words), 0);
  EXPECT_EQ(words, (std::vector<std::uint32_t>{~0u, 0x1ff}));
}

ACCORDION_ON_EACH_TARGET(SignKernels);

}  // namespace
}  // namespace accordion::kernels
