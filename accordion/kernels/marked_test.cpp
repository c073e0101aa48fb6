// Every kernel, on every instruction set this machine has, against its plain loop.
#include "accordion/kernels/marked.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "accordion/kernels/targets_testing.h"

namespace accordion::kernels {
namespace {

class MarkedKernels : public EachTarget {
 protected:
  // Words without marks, with all and with some.
  void draw(std::size_t n) {
    std::normal_distribution<float> normal;
    gradient.resize(n), residual.resize(n), marks.assign((n + 63) / 64, 0);
    count = 0;
    for (std::size_t i = 0; i < n; ++i) {
      gradient[i] = normal(generator), residual[i] = normal(generator);
      const bool marked = i / 64 % 3 == 1 || (i / 64 % 3 == 2 && generator() % 5 == 0);
      marks[i / 64] |= std::uint64_t{marked} << i % 64;
      count += marked;
    }
  }

  std::mt19937 generator{1};
  std::vector<float> gradient, residual;
  std::vector<std::uint64_t> marks;
  std::size_t count;
};

TEST_P(MarkedKernels, MatchTheReference) {
  for (std::size_t n : {0, 1, 63, 64, 65, 130, 1000, 4099}) {
    draw(n);
    std::vector<float> fast(n, 7), slow(n, 7), values(count), expected(count);
    EXPECT_TRUE(take_marked(marks, gradient, residual, fast, values.data()));
    EXPECT_TRUE(reference::take_marked(marks, gradient, residual, slow, expected.data()));
    EXPECT_EQ(fast, slow);
    EXPECT_EQ(values, expected);

    EXPECT_TRUE(take_marked(marks, gradient, {}, {}, values.data()));
    EXPECT_TRUE(reference::take_marked(marks, gradient, {}, {}, expected.data()));
    EXPECT_EQ(values, expected);

    put_marked(marks, values.data(), 0.3, fast);
    reference::put_marked(marks, values.data(), 0.3, slow);
    EXPECT_EQ(fast, slow);
  }
}

TEST_P(MarkedKernels, TossLikeTheReference) {
  for (std::size_t n : {0, 1, 63, 64, 65, 512, 1000, 4099})
    for (std::uint16_t heads : {0, 1, 6554, 0x8000, 0xa000, 0xffff}) {
      std::vector<std::uint64_t> fast((n + 63) / 64, 7), slow((n + 63) / 64, 7);
      EXPECT_EQ(toss(RandomKey{n}, heads, n, fast), reference::toss(RandomKey{n}, heads, n, slow));
      EXPECT_EQ(fast, slow) << n << " " << heads;
    }
}

TEST_P(MarkedKernels, TossWithTheRightProbability) {
  const std::size_t n = 1000000;
  std::vector<std::uint64_t> tossed((n + 63) / 64);
  for (std::uint16_t heads : {0, 655, 6554, 30000}) {
    const double p = heads / 65536.0, expected = p * n;
    EXPECT_NEAR(static_cast<double>(toss(RandomKey{5}, heads, n, tossed)), expected,
                5 * std::sqrt(expected * (1 - p)));
  }
}

TEST_P(MarkedKernels, FindEveryValueThatIsNotFinite) {
  draw(200);
  std::vector<float> next(200), values(count);
  for (float bad : {INFINITY, -INFINITY, NAN, -NAN})
    for (std::size_t i = 0; i < 200; ++i) {
      const float good = std::exchange(residual[i], bad);
      EXPECT_FALSE(take_marked(marks, gradient, residual, next, values.data())) << i;
      EXPECT_FALSE(take_marked(marks, residual, {}, {}, values.data())) << i;
      residual[i] = good;
    }
}

ACCORDION_ON_EACH_TARGET(MarkedKernels);

}  // namespace
}  // namespace accordion::kernels
