// Every kernel, on every instruction set this machine has, against its plain loop.
#include "accordion/kernels/lowrank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "accordion/base/noise_testing.h"
#include "accordion/kernels/targets_testing.h"

namespace accordion::kernels {
namespace {

void expect_near(const std::vector<float>& fast, const std::vector<float>& slow, double scale, LowRank size) {
  ASSERT_EQ(fast.size(), slow.size());
  for (std::size_t i = 0; i < fast.size(); ++i)
    ASSERT_NEAR(fast[i], slow[i], 1e-5 * scale)
        << size.rows << " x " << size.columns << " rank " << size.rank << ", " << i;
}

class LowRankKernels : public EachTarget {};

void match(LowRank size) {
  const std::size_t n = size.rows * size.columns;
  const std::vector<float> gradient = noise(n, 1), residual = noise(n, 2);
  const std::vector<float> p = noise(size.rows * size.rank, 3), q = noise(size.columns * size.rank, 4);

  std::vector<float> a(n), a_slow(n), fast(p.size(), 7.0f), slow(p.size());
  project(size, gradient, residual, a, q, fast);
  reference::project(size, gradient, residual, a_slow, q, slow);
  EXPECT_EQ(a, a_slow);
  expect_near(fast, slow, std::sqrt(size.columns) * 3, size);

  project(size, gradient, {}, {}, q, fast);
  reference::project(size, gradient, {}, {}, q, slow);
  expect_near(fast, slow, std::sqrt(size.columns) * 3, size);

  fast.assign(q.size(), 7.0f), slow.assign(q.size(), 0);
  coefficients(size, a, p, fast);
  reference::coefficients(size, a, p, slow);
  expect_near(fast, slow, std::sqrt(size.rows) * 5, size);

  // What all ranks decode: every bit.
  fast.assign(n, 7.0f), slow.assign(n, 0);
  expand(size, p, q, fast);
  reference::expand(size, p, q, slow);
  EXPECT_EQ(fast, slow);
  expand_add(size, p, q, fast);
  reference::expand_add(size, p, q, slow);
  EXPECT_EQ(fast, slow);

  // The same bits as one after the other, whatever of it stays in the cache.
  std::vector<float> taken(q.size(), 7.0f), alone(q.size(), 7.0f), minus_p = p;
  fast = a, slow = a;
  take_out(size, p, taken, fast);
  coefficients(size, a, p, alone);
  EXPECT_EQ(taken, alone);
  for (float& value : minus_p) value = -value;
  reference::expand_add(size, minus_p, taken, slow);
  EXPECT_EQ(fast, slow);
  fast = a, slow = a;
  reference::take_out(size, p, alone, slow);
  take_out(size, p, taken, fast);
  expect_near(fast, slow, static_cast<double>(size.rows * size.rank) * 5, size);
}

TEST_P(LowRankKernels, MatchTheReference) {
  for (std::size_t rank : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17})
    for (std::size_t rows : {0, 1, 2, 5, 12})
      for (std::size_t columns : {0, 1, 7, 8, 27, 600}) match({rows, columns, rank});
  match({3, 40000, 2});  // More columns than one block.
  match({11, 3000, 9});
  match({700, 500, 4});  // More of a than is taken out at once.
  match({3000, 130, 9});
}

TEST_P(LowRankKernels, OfRankZeroExpandToZero) {
  std::vector<float> a(6, 7.0f);
  expand_add({2, 3, 0}, {}, {}, a);
  EXPECT_EQ(a, std::vector<float>(6, 7.0f));
  expand({2, 3, 0}, {}, {}, a);
  EXPECT_EQ(a, std::vector<float>(6));
}

TEST_P(LowRankKernels, ShowEveryValueThatIsNotFinite) {
  const LowRank size{9, 37, 2};
  const std::vector<float> q = noise(74, 1);
  for (float bad : {std::numeric_limits<float>::infinity(), std::nanf("")})
    for (std::size_t i = 0; i < 9 * 37; i += 5) {
      std::vector<float> gradient = noise(9 * 37, 2), p(18);
      gradient[i] = bad;
      project(size, gradient, {}, {}, q, p);
      EXPECT_FALSE(std::isfinite(p[i / 37])) << i;
    }
}

// Ranks that hold the mean at different addresses must still agree on every bit.
TEST_P(LowRankKernels, ExpandAlikeWhereverTheMatrixLies) {
  const LowRank size{13, 45, 4};
  const std::vector<float> p = noise(13 * 4, 1), q = noise(45 * 4, 2);
  std::vector<float> first(13 * 45), second(13 * 45 + 3);
  expand(size, p, q, first);
  expand(size, p, q, std::span(second).subspan(3));
  EXPECT_TRUE(std::equal(first.begin(), first.end(), second.begin() + 3));
}

ACCORDION_ON_EACH_TARGET(LowRankKernels);

}  // namespace
}  // namespace accordion::kernels
