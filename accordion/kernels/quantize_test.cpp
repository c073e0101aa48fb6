// Every kernel, on every instruction set this machine has, gives the bits of its plain loop.
#include "accordion/kernels/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "accordion/kernels/draws.h"
#include "accordion/kernels/levels.h"
#include "accordion/kernels/targets_testing.h"

namespace accordion::kernels {
namespace {

std::vector<float> noise(std::size_t n, float size = 1) {
  std::mt19937 generator(static_cast<unsigned>(n) + 1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = size * normal(generator) * std::exp(2 * normal(generator));
  return values;
}

class QuantizeKernels : public EachTarget {};

TEST_P(QuantizeKernels, MatchTheReference) {
  Draws draws;
  draw(RandomKey{3}, 5, draws);
  for (std::size_t n : {0, 1, 3, 7, 8, 15, 16, 17, 31, 32, 33, 100, 511, 512}) {
    for (float size : {1.0f, 1e-42f, 1e-36f, 1e33f}) {
      const std::vector<float> values = noise(n + 1, size);
      const std::span<const float> x = std::span(values).subspan(1);  // Nothing may rely on alignment.
      const float largest = largest_magnitude(x);
      EXPECT_EQ(largest, reference::largest_magnitude(x));

      const Moments fast = moments(x, values[0]), slow = reference::moments(x, values[0]);
      EXPECT_EQ(fast.sum, slow.sum) << n;
      EXPECT_EQ(fast.squares, slow.squares) << n;
      EXPECT_EQ(fast.largest, slow.largest) << n;

      for (int bits : {2, 4, 8}) {
        const int steps = (1 << (bits - 1)) - 1;
        // A scale below the largest magnitude clips.
        for (float scale : {largest, largest / 3, 0.0f}) {
          Levels a = {}, b = {};
          quantize(x, scale, steps, draws.data(), a.data());
          reference::quantize(x, scale, steps, draws.data(), b.data());
          ASSERT_EQ(a, b) << n << " " << size << " " << bits << " " << scale;
        }
      }
    }
  }
}

TEST_P(QuantizeKernels, KeepMultiplesOfTheStepAndTheLargest) {
  for (int steps : {1, 7, 127})
    for (float scale : {1.0f, 0.3f, 7e-41f, 3e38f}) {
      std::vector<float> x;
      for (int level = -steps; level <= steps; ++level)
        x.push_back(static_cast<float>(static_cast<double>(scale) * level / steps));
      for (std::uint16_t every : {0, 0xffff}) {
        Draws draws;
        draws.fill(every);
        Levels levels;
        quantize(x, scale, steps, draws.data(), levels.data());
        for (int level = -steps; level <= steps; ++level) {
          const bool exact =
              scale > 1e-38f || level == 0 || std::abs(level) == steps;  // Not on a subnormal grid.
          if (exact) {
            EXPECT_EQ(levels[level + steps], level) << scale;
          }
        }
      }
    }
}

TEST_P(QuantizeKernels, SeeWhatIsNotFinite) {
  for (float odd : {std::nanf(""), -std::nanf(""), HUGE_VALF, -HUGE_VALF})
    for (std::size_t at : {0, 12, 31, 35}) {
      std::vector<float> x(36, 1.0f);
      x[at] = odd;
      EXPECT_FALSE(std::isfinite(largest_magnitude(x)));
      EXPECT_FALSE(std::isfinite(moments(x, 0).largest));
      Draws draws = {};
      Levels levels = {};
      quantize(x, 1, 7, draws.data(), levels.data());
      EXPECT_EQ(levels[1], 7);
    }
}

ACCORDION_ON_EACH_TARGET(QuantizeKernels);

}  // namespace
}  // namespace accordion::kernels
