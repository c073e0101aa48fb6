#include "accordion/compress/topk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/base/noise_testing.h"

namespace accordion {
namespace {

using Floats = std::vector<float>;

// Sorts, which needs no cleverness to be right: the k largest, ties to the lower index.
Floats masked(const Floats& a, std::size_t k) {
  std::vector<std::size_t> order(a.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto i, auto j) { return std::abs(a[i]) > std::abs(a[j]); });
  Floats result(a.size());
  for (std::size_t i = 0; i < k; ++i) result[order[i]] = a[order[i]];
  return result;
}

struct Rank {
  std::vector<std::byte> bytes;
  Encoded encoded;
  Floats next;
};

Rank encode(double keep, int world, const Floats& gradient, const Floats& residual, bool feedback = true) {
  const Shape shape{{static_cast<std::int64_t>(gradient.size())}};
  const auto codec = make(TopKOptions{keep}, shape);
  const Context context{.world = world};
  Rank rank{std::vector<std::byte>(codec->round(0, context).max_bytes),
            {},
            Floats(feedback ? gradient.size() : 0, 9.0f)};
  Feedback in{gradient, {}, {}};
  if (feedback) in.residual = residual, in.next = rank.next;
  rank.encoded = codec->encode(0, context, in, rank.bytes);
  EXPECT_EQ(rank.encoded.bytes, rank.bytes.size());
  EXPECT_EQ(rank.encoded.bytes, payload_bytes(TopKOptions{keep}, shape, world));
  return rank;
}

Floats decode(double keep, int world, std::size_t n, const std::vector<Rank>& ranks) {
  const auto codec = make(TopKOptions{keep}, Shape{{static_cast<std::int64_t>(n)}});
  const Context context{.world = world};
  std::vector<Message> messages;
  for (const Rank& rank : ranks) messages.push_back({rank.bytes, rank.encoded.count, rank.encoded.flags});
  Floats mean(n, 5.0f), sum(n);
  if (codec->round(0, context).pattern == Pattern::kSum) {
    for (const Rank& rank : ranks)
      for (std::size_t i = 0; i < n; ++i) sum[i] += reinterpret_cast<const float*>(rank.bytes.data())[i];
    messages = {{std::as_bytes(std::span(sum)), 0, 0}};
  }
  codec->decode(0, context, messages, mean);
  return mean;
}

TEST(TopK, SendsTheLargestAndKeepsTheRest) {
  for (std::size_t n : {1, 2, 7, 100, 4096, 4097, 20011}) {
    for (double keep : {0.001, 0.01, 0.1, 0.45, 0.9, 1.0}) {
      for (int world : {1, 2, 3}) {
        SCOPED_TRACE(::testing::Message() << n << " entries, keep " << keep << ", world " << world);
        const std::size_t k = std::clamp<std::size_t>(static_cast<std::size_t>(keep * n), 1, n);
        std::vector<Rank> ranks;
        Floats expected(n);
        for (int rank = 0; rank < world; ++rank) {
          const Floats gradient = heavy_tailed(n, rank), residual = heavy_tailed(n, rank + 10);
          Floats a(n);
          for (std::size_t i = 0; i < n; ++i) a[i] = gradient[i] + residual[i];
          ranks.push_back(encode(keep, world, gradient, residual));
          const Floats sent = masked(a, k);
          for (std::size_t i = 0; i < n; ++i) {
            expected[i] += sent[i] / static_cast<float>(world);
            ASSERT_EQ(ranks.back().next[i], sent[i] == 0 ? a[i] : 0) << i;
          }
          EXPECT_TRUE(ranks.back().encoded.finite);
          EXPECT_EQ(encode(keep, world, a, {}, false).bytes, ranks.back().bytes);
        }
        EXPECT_EQ(decode(keep, world, n, ranks), expected);
      }
    }
  }
}

TEST(TopK, GivesTiesToTheLowerIndexWhateverTheSampleSays) {
  for (std::size_t n : {50, 30000}) {
    Floats few = heavy_tailed(n, 3), tail(n, 1e-30f), ladder(n), trap(n);
    for (float& value : few) value = std::round(value);
    for (std::size_t i = 0; i < n / 200; ++i)
      tail[n - 1 - i] = 1 + static_cast<float>(i);  // All in one corner.
    for (std::size_t i = 0; i < n; ++i) ladder[i] = static_cast<float>(i % 17);
    // Large wherever the codec looks for a first guess, so that the guess is too high.
    for (std::size_t i = 0; i < n; ++i) trap[i] = 1e-3f + static_cast<float>(i) * 1e-9f;
    for (std::uint64_t i = 0; i < n / 16; ++i)
      trap[16 * i + ((i * 0x9e3779b9u & 0xffffffffu) * 16 >> 32)] = 2;
    for (const Floats& a :
         {trap, Floats(n, 0.0f), Floats(n, -3.0f), Floats(n, 1e-42f), Floats(n, 3e38f), few, tail, ladder})
      for (int world : {1, 20})
        for (double keep : {0.02, 0.1, 0.5}) {
          const std::vector<Rank> ranks(world, encode(keep, world, a, Floats(n)));
          const Floats expected = masked(a, static_cast<std::size_t>(keep * n)),
                       mean = decode(keep, world, n, ranks);
          for (std::size_t i = 0; i < n; ++i) {
            ASSERT_NEAR(mean[i], expected[i], 1e-5f * std::abs(expected[i]) + 1e-43f) << i << " of " << n;
            ASSERT_EQ(ranks[0].next[i], expected[i] == 0 ? a[i] : 0) << i << " of " << n;
          }
        }
  }
}

TEST(TopK, AddsDenseTensorsWhereThatIsShorter) {
  const Shape shape{{1000}};
  EXPECT_EQ(payload_bytes(TopKOptions{0.1}, shape, 9), 800u);
  EXPECT_EQ(payload_bytes(TopKOptions{0.1}, shape, 10), 4000u);
  EXPECT_EQ(make(TopKOptions{0.1}, shape)->round(0, {.world = 9}).pattern, Pattern::kGather);
  EXPECT_EQ(make(TopKOptions{0.1}, shape)->round(0, {.world = 10}).pattern, Pattern::kSum);
  EXPECT_EQ(payload_bytes(TopKOptions{0.1}, Shape{{0, 3}}, 4), 0u);
}

TEST(TopK, ReportsNonFiniteEntriesAndStillSendsWhatDecodes) {
  for (float bad : {std::nanf(""), std::numeric_limits<float>::infinity()})
    for (int world : {1, 200})
      for (std::size_t at : {0, 4000, 9999}) {
        Floats a = heavy_tailed(10000, 1);
        a[at] = bad;
        const Rank rank = encode(0.01, world, a, Floats(a.size()));
        EXPECT_FALSE(rank.encoded.finite);
        decode(0.01, world, a.size(), std::vector<Rank>(world, rank));
      }
}

TEST(TopK, RefusesWhatCannotBeRight) {
  const Floats a = heavy_tailed(4096, 2);
  const Rank good = encode(0.01, 2, a, Floats(a.size()));
  const auto set_index = [&](std::size_t i, std::uint32_t value) {
    Rank bad = good;
    std::memcpy(bad.bytes.data() + 4 * i, &value, 4);
    return bad;
  };
  try {
    decode(0.01, 2, a.size(), {good, set_index(39, 5000)});
    FAIL() << "an index beyond the end was accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "topk: index 39 of message from rank 1 is 5000, expected below 4096");
  }
  EXPECT_THROW(decode(0.01, 2, a.size(), {set_index(1, 0xffffffff), good}), Error);
  EXPECT_THROW(decode(0.01, 2, a.size(), {set_index(39, 0), good}), Error);
  std::uint32_t first = 0;
  std::memcpy(&first, good.bytes.data(), 4);
  EXPECT_THROW(decode(0.01, 2, a.size(), {good, set_index(1, first)}), Error) << "an entry came twice";
  EXPECT_THROW(decode(0.01, 2, a.size(), {good}), Error);
  Rank cut = good, wild = good;
  cut.bytes.pop_back();
  wild.encoded.count = 0xffffffff;
  EXPECT_THROW(decode(0.01, 2, a.size(), {good, cut}), Error);
  EXPECT_THROW(decode(0.01, 2, a.size(), {wild, good}), Error);

  std::mt19937 generator(1);
  for (int trial = 0; trial < 500; ++trial) {
    Rank flipped = good;
    flipped.bytes[generator() % flipped.bytes.size()] ^= static_cast<std::byte>(1u << generator() % 8);
    try {
      decode(0.01, 2, a.size(), {good, flipped});
    } catch (const Error&) {
    }
  }
}

TEST(TopK, RefusesADensityOutOfRange) {
  EXPECT_THROW(make(TopKOptions{0}, Shape{{8}}), UsageError);
  EXPECT_THROW(make(TopKOptions{1.5}, Shape{{8}}), UsageError);
}

}  // namespace
}  // namespace accordion
