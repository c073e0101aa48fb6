// Every kernel, on every instruction set this machine has, gives the bits of its plain loop; and the plain
// loops round as the formats ask.
#include "accordion/kernels/halves.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "accordion/kernels/targets_testing.h"

namespace accordion::kernels {
namespace {

class HalfKernels : public EachTarget {};

std::vector<std::uint16_t> every_number() {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  return all;
}

// Every number of the format, what lies half-way to the next, and what lies just beside that.
template <class Widen>
std::vector<float> around(Widen widen) {
  std::vector<float> x;
  for (std::uint32_t i = 0; i < 65535; ++i) {
    const float a = widen(static_cast<std::uint16_t>(i)), b = widen(static_cast<std::uint16_t>(i + 1));
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    const float middle = static_cast<float>((static_cast<double>(a) + b) / 2);
    for (float value : {a, middle, std::nextafterf(middle, a), std::nextafterf(middle, b)})
      x.push_back(value);
  }
  for (float value : {1e5f, -1e5f, 65519.9f, 65520.0f, 3.4e38f, -3.4e38f, 1e-45f, 1e-9f}) x.push_back(value);
  return x;
}

TEST(Halves, RoundToNearestEven) {
  EXPECT_EQ(reference::to_half(1 + 0x1p-11f), reference::to_half(1));
  EXPECT_EQ(reference::to_half(1 + 0x3p-11f), reference::to_half(1 + 0x2p-10f));
  EXPECT_EQ(reference::to_half(0x1p-25f), 0);
  EXPECT_EQ(reference::to_half(0x1.8p-24f), 2);
  EXPECT_EQ(reference::to_half(1e9f), 0x7bff);
  EXPECT_EQ(reference::from_half(0x3c01), 1 + 0x1p-10f);
  EXPECT_EQ(reference::from_half(0x8001), -0x1p-24f);
  EXPECT_EQ(reference::to_bfloat16(1 + 0x1p-8f), 0x3f80);
  EXPECT_EQ(reference::to_bfloat16(1 + 0x3p-8f), 0x3f82);
  EXPECT_EQ(reference::to_bfloat16(3.4e38f), 0x7f7f);
}

TEST_P(HalfKernels, NarrowLikeTheReference) {
  const auto compare = [](auto fast, auto slow, const std::vector<float>& x) {
    const std::vector<float> e(x.rbegin(), x.rend());
    for (float divisor : {1.0f, 3.0f})
      for (const auto& residual : {std::span<const float>(), std::span<const float>(e)}) {
        std::vector<std::uint16_t> a(x.size()), b(x.size());
        std::vector<float> next(residual.size()), expected(residual.size());
        const Narrowed p = fast(x, residual, divisor, a, next), q = slow(x, residual, divisor, b, expected);
        EXPECT_EQ(a, b);
        EXPECT_EQ(next, expected);
        EXPECT_EQ(p.saturated, q.saturated);
        EXPECT_EQ(p.finite, q.finite);
      }
  };
  compare(to_halves, reference::to_halves, around(reference::from_half));
  // An infinite sum of two finite numbers would compare as NaN.
  std::vector<float> moderate;
  for (float x : around(reference::from_bfloat16))
    if (std::fabs(x) < 1.5e38f) moderate.push_back(x);
  compare(to_bfloat16s, reference::to_bfloat16s, moderate);
}

TEST_P(HalfKernels, WidenEveryNumber) {
  const auto compare = [](auto fast, auto slow) {
    const std::vector<std::uint16_t> all = every_number();
    std::vector<float> a(all.size()), b(all.size());
    fast(all, a);
    slow(all, b);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool same = std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i]);
      ASSERT_TRUE(same || (std::isnan(a[i]) && std::isnan(b[i]))) << i;
    }
  };
  compare(from_halves, reference::from_halves);
  compare(from_bfloat16s, reference::from_bfloat16s);
}

TEST_P(HalfKernels, SumInOrderAndRoundOnce) {
  const auto compare = [](auto fast, auto slow, std::uint16_t infinity) {
    std::mt19937 generator(1);
    for (std::size_t n : {0, 1, 3, 7, 8, 9, 31, 1000}) {
      std::vector<std::vector<std::uint16_t>> parts(5, std::vector<std::uint16_t>(n));
      std::vector<const std::uint16_t*> views;
      for (auto& part : parts) {
        for (auto& x : part) x = static_cast<std::uint16_t>(generator() % infinity | (generator() & 0x8000));
        views.push_back(part.data());
      }
      std::vector<std::uint16_t> a(n), b(n);
      fast(views, a);
      slow(views, b);
      EXPECT_EQ(a, b);
      fast(views, parts[2]);  // The owner's own part may be the target.
      EXPECT_EQ(parts[2], b);
    }
  };
  compare(sum_halves, reference::sum_halves, 0x7c00);
  compare(sum_bfloat16s, reference::sum_bfloat16s, 0x7f00);
  // Rounding after each addition would lose all but the first.
  const std::uint16_t one = reference::to_half(1), little = reference::to_half(0x1p-12f);
  const std::vector<const std::uint16_t*> parts = {&one, &little, &little, &little, &little};
  std::uint16_t total;
  sum_halves(parts, {&total, 1});
  EXPECT_EQ(total, reference::to_half(1 + 0x1p-10f));
}

TEST_P(HalfKernels, SeeWhatIsNotFinite) {
  for (float odd : {std::nanf(""), HUGE_VALF, -HUGE_VALF})
    for (std::size_t at : {0, 16, 20}) {
      std::vector<float> x(21, 1.0f);
      x[at] = odd;
      std::vector<std::uint16_t> out(21);
      EXPECT_FALSE(to_halves(x, {}, 1, out, {}).finite);
      EXPECT_FALSE(to_bfloat16s(x, {}, 1, out, {}).finite);
    }
}

ACCORDION_ON_EACH_TARGET(HalfKernels);

}  // namespace
}  // namespace accordion::kernels
