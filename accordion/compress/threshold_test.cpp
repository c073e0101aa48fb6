#include "accordion/compress/threshold.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/base/noise_testing.h"
#include "accordion/compress/sparse.h"

namespace accordion {
namespace {

using Floats = std::vector<float>;

struct Rank {
  std::vector<std::byte> bytes;
  Encoded encoded;
  Floats next;
};

Rank encode(double lambda, int world, const Floats& gradient, const Floats& residual) {
  const Shape shape{{static_cast<std::int64_t>(gradient.size())}};
  const auto codec = make(ThresholdOptions{lambda}, shape);
  const Round round = codec->round(0, {.world = world});
  EXPECT_FALSE(round.fixed);
  EXPECT_EQ(round.max_bytes, payload_bytes(ThresholdOptions{lambda}, shape, world));
  Rank rank{std::vector<std::byte>(round.max_bytes), {}, Floats(residual.size(), 9.0f)};
  rank.encoded = codec->encode(0, {.world = world}, {gradient, residual, rank.next}, rank.bytes);
  EXPECT_LE(rank.encoded.bytes, round.max_bytes);
  rank.bytes.resize(rank.encoded.bytes);
  return rank;
}

Floats decode(const std::vector<Rank>& ranks, std::size_t n) {
  std::vector<Message> messages;
  for (const Rank& rank : ranks) messages.push_back({rank.bytes, rank.encoded.count, rank.encoded.flags});
  Floats mean(n, 5.0f);
  make(ThresholdOptions{}, Shape{{static_cast<std::int64_t>(n)}})
      ->decode(0, {.world = static_cast<int>(ranks.size())}, messages, mean);
  return mean;
}

TEST(Threshold, SendsWhatReachesLambda) {
  for (std::size_t n : {0, 1, 2, 3, 8, 33, 5000}) {
    for (double lambda : {1e-50, 0.1, 0.6744, 1.0, 3.0, 100.0}) {
      SCOPED_TRACE(::testing::Message() << n << " entries, lambda " << lambda);
      std::vector<Rank> ranks;
      Floats expected(n);
      for (unsigned seed : {1u, 2u, 3u}) {
        const Floats gradient = noise(n, seed), residual = noise(n, seed + 10);
        ranks.push_back(encode(lambda, 3, gradient, residual));
        std::size_t count = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const float a = gradient[i] + residual[i];
          const bool sent = std::abs(a) >= lambda;
          count += sent;
          ASSERT_EQ(ranks.back().next[i], sent ? 0 : a) << i;
          expected[i] += (sent ? a : 0) / 3;
        }
        const bool dense = 2 * count > n;
        EXPECT_EQ(ranks.back().encoded.flags, dense ? sparse::kDense : 0);
        EXPECT_EQ(ranks.back().encoded.bytes, dense ? 4 * n : 8 * count);
        EXPECT_EQ(ranks.back().encoded.count, dense ? n : count);
      }
      EXPECT_EQ(decode(ranks, n), expected);
    }
  }
}

TEST(Threshold, ComparesWithLambdaAndNotWithItsNearestFloat) {
  const float below = 0.1f, above = std::nextafter(0.1f, 0.0f);  // 0.1f is a little more than 0.1.
  EXPECT_EQ(encode(0.1, 1, {below, 0, 0}, {}).encoded.count, 1u);
  EXPECT_EQ(encode(0.1, 1, {above, 0, 0}, {}).encoded.count, 0u);
  EXPECT_EQ(encode(0.7, 1, {0.7f, 0, 0}, {}).encoded.count, 0u);  // 0.7f is a little less than 0.7.
}

TEST(Threshold, ReportsNonFiniteEntries) {
  for (float bad : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
    Floats a = noise(100, 1);
    a[99] = bad;
    for (double lambda : {0.01, 2.0}) EXPECT_FALSE(encode(lambda, 1, a, Floats(100)).encoded.finite);
  }
}

TEST(Threshold, RefusesWhatCannotBeRight) {
  const Rank good = encode(1.5, 2, noise(4096, 1), {});
  const Rank dense = encode(0.1, 2, noise(4096, 1), {});
  ASSERT_GT(good.encoded.count, 100u);
  ASSERT_EQ(dense.encoded.flags, sparse::kDense);
  decode({good, dense}, 4096);
  for (const Rank& rank : {good, dense}) {
    Rank cut = rank, flagged = rank;
    cut.bytes.pop_back();
    flagged.encoded.flags ^= sparse::kDense;
    EXPECT_THROW(decode({good, cut}, 4096), Error);
    EXPECT_THROW(decode({good, flagged}, 4096), Error);
  }
  for (std::uint32_t count : {0u, good.encoded.count - 1, good.encoded.count + 1, 0x80000000u, 0xffffffffu}) {
    Rank wild = good;
    wild.encoded.count = count;
    EXPECT_THROW(decode({wild, good}, 4096), Error) << count;
  }
  std::mt19937 generator(1);
  for (int trial = 0; trial < 300; ++trial) {
    Rank flipped = good;
    flipped.bytes[generator() % flipped.bytes.size()] ^= static_cast<std::byte>(1u << generator() % 8);
    try {
      decode({good, flipped}, 4096);
    } catch (const Error&) {
    }
  }
}

TEST(Threshold, RefusesALambdaThatIsNotPositive) {
  EXPECT_THROW(make(ThresholdOptions{0}, Shape{{8}}), UsageError);
  EXPECT_THROW(make(ThresholdOptions{-1}, Shape{{8}}), UsageError);
}

}  // namespace
}  // namespace accordion
