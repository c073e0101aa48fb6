// Every kernel, on every instruction set this machine has, against its plain loop.
#include "accordion/kernels/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "accordion/base/noise_testing.h"
#include "accordion/kernels/targets_testing.h"

namespace accordion::kernels {
namespace {

// What one sweep leaves behind; the outputs start one element into their vectors, so nothing may rely on
// alignment.
struct Result {
  explicit Result(std::size_t n, std::size_t room)
      : first(n + 2, 7.0f), second(n + 2, 7.0f), indices(room + 1, 99), values(room + 1, 99.0f) {}

  std::span<float> one() { return std::span(first).subspan(1, first.size() - 2); }
  std::span<float> two() { return std::span(second).subspan(1, second.size() - 2); }
  Room room() {
    return {std::span(indices).first(indices.size() - 1), std::span(values).first(values.size() - 1)};
  }

  Swept swept;
  std::vector<float> first, second;
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

void expect_same(const Result& fast, const Result& slow) {
  EXPECT_EQ(fast.swept.picked, slow.swept.picked);
  EXPECT_EQ(fast.swept.above, slow.swept.above);
  EXPECT_EQ(fast.swept.largest, slow.swept.largest);
  EXPECT_NEAR(fast.swept.total, slow.swept.total, 1e-12 * slow.swept.total);
  EXPECT_EQ(fast.first, slow.first);
  EXPECT_EQ(fast.second, slow.second);
  EXPECT_EQ(fast.indices, slow.indices);
  EXPECT_EQ(fast.values, slow.values);
}

class SelectKernels : public EachTarget {};

TEST_P(SelectKernels, SweepsMatchTheReference) {
  for (std::size_t n : {0, 1, 3, 7, 8, 9, 17, 33, 1000, 1024, 4099}) {
    const std::vector<float> x = heavy_tailed(n + 1, 1, 3), y = heavy_tailed(n + 1, 2, 3);
    for (float low : {0.0f, 1.0f, 30.0f}) {
      for (std::size_t room : {n, n / 3}) {  // The second is often too small.
        for (bool both : {true, false}) {
          SCOPED_TRACE(::testing::Message() << n << " entries from " << low << ", room " << room);
          const std::span<const float> second = both ? std::span(y).subspan(1) : std::span<const float>();
          const Sum a{std::span(x).subspan(1), second};
          Result fast(n, room), slow(n, room);
          fast.swept = sweep(a, magnitude(low), fast.one(), fast.room());
          slow.swept = reference::sweep(a, magnitude(low), slow.one(), slow.room());
          expect_same(fast, slow);

          fast = slow = Result(n, room);
          const Magnitude high = magnitude(3 * low);
          fast.swept = sweep_split(a, magnitude(low), high, 3, fast.one(), fast.two(), fast.room());
          slow.swept =
              reference::sweep_split(a, magnitude(low), high, 3, slow.one(), slow.two(), slow.room());
          expect_same(fast, slow);
          EXPECT_EQ(count_at_least(a, magnitude(low)), reference::count_at_least(a, magnitude(low)));
        }
      }
    }
  }
}

TEST_P(SelectKernels, MomentumMatchesTheReference) {
  for (std::size_t n : {1, 9, 4099}) {
    // Whole numbers and a factor of a half, so that a fused multiplication rounds like two operations.
    std::vector<float> g = heavy_tailed(n, 1, 3), u = heavy_tailed(n, 2, 3), v = heavy_tailed(n, 3, 3);
    for (auto* values : {&g, &u, &v})
      for (float& value : *values) value = std::round(std::clamp(value, -1000.0f, 1000.0f));
    for (bool nesterov : {false, true}) {
      for (bool feedback : {false, true}) {
        const MomentumUpdate update{g, u, feedback ? std::span<const float>(v) : std::span<const float>(),
                                    0.5f, nesterov};
        Result fast(n, n), slow(n, n);
        fast.swept = sweep_momentum(update, magnitude(4.0f), fast.one(), fast.two(), fast.room());
        slow.swept = reference::sweep_momentum(update, magnitude(4.0f), slow.one(), slow.two(), slow.room());
        expect_same(fast, slow);
      }
    }
  }
}

TEST_P(SelectKernels, SeeEveryNonFiniteEntry) {
  for (float bad : {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity()}) {
    for (std::size_t at = 0; at < 41; ++at) {
      std::vector<float> x(41, -1.0f);
      x[at] = bad;
      EXPECT_FALSE(sweep({x}, magnitude(2.0f), {}, {}).finite()) << at;
    }
  }
  const std::vector<float> huge(41, -std::numeric_limits<float>::max());
  EXPECT_TRUE(sweep({huge}, 0, {}, {}).finite());
  EXPECT_DOUBLE_EQ(sweep({huge}, 0, {}, {}).total, 41.0 * std::numeric_limits<float>::max());
}

TEST_P(SelectKernels, PartMatchesTheReference) {
  for (std::size_t n : {0, 1, 7, 8, 9, 100, 1001})
    for (float sure : {0.0f, 0.5f, 1e30f})
      for (std::size_t spare : {0, 1, 50}) {
        std::vector<std::uint32_t> indices(n);
        for (std::size_t i = 0; i < n; ++i) indices[i] = static_cast<std::uint32_t>(3 * i + 0x80000000u);
        const std::vector<float> values = heavy_tailed(n, 4, 3);
        // As much room as is needed and some more, or less.
        const std::size_t need = reference::count_at_least({values}, magnitude(sure));
        const std::size_t room = n % 2 == 0 ? need + spare : need - std::min(need, spare);
        Result fast(0, room), slow(0, room);
        std::vector<std::uint32_t> fast_indices = indices, slow_indices = indices;
        std::vector<float> fast_values = values, slow_values = values;
        const std::size_t left = part({fast_indices, fast_values}, magnitude(sure), fast.room());
        ASSERT_EQ(left, reference::part({slow_indices, slow_values}, magnitude(sure), slow.room()));
        for (auto* list : {&fast_indices, &slow_indices}) list->resize(left);
        for (auto* list : {&fast_values, &slow_values}) list->resize(left);
        EXPECT_EQ(fast_indices, slow_indices);
        EXPECT_EQ(fast_values, slow_values);
        // Spare room may hold anything.
        for (Result* result : {&fast, &slow})
          for (std::size_t i = std::min(room, need); i < room; ++i)
            result->indices[i] = 0, result->values[i] = 0;
        EXPECT_EQ(fast.indices, slow.indices);
        EXPECT_EQ(fast.values, slow.values);
      }
}

ACCORDION_ON_EACH_TARGET(SelectKernels);

}  // namespace
}  // namespace accordion::kernels
