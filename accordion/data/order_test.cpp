#include "accordion/data/order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "accordion/base/error.h"

namespace accordion {
namespace {

std::vector<std::uint32_t> sorted(std::vector<std::uint32_t> items) {
  std::sort(items.begin(), items.end());
  return items;
}

RC_GTEST_PROP(EpochOrder, EveryEpochHoldsTheSameDistinctSamples, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(1, 300);
  const auto samples = *rc::gen::inRange<std::size_t>(0, size + 1);
  const EpochOrder order(size, samples, *rc::gen::arbitrary<std::uint64_t>());
  const std::vector<std::uint32_t> first = sorted(order.epoch(0));
  RC_ASSERT(first.size() == (samples == 0 ? size : samples));
  RC_ASSERT(order.size() == first.size());
  RC_ASSERT(std::adjacent_find(first.begin(), first.end()) == first.end());
  RC_ASSERT(first.back() < size);
  for (int epoch = 1; epoch < 4; ++epoch) RC_ASSERT(sorted(order.epoch(epoch)) == first);
}

RC_GTEST_PROP(EpochOrder, GlobalBatchesDoNotDependOnTheNumberOfRanks, ()) {
  const auto samples = *rc::gen::inRange<std::size_t>(1, 300);
  const auto global_batch = *rc::gen::inRange<std::size_t>(1, 80);
  const std::vector<std::uint32_t> order =
      EpochOrder(300, samples, *rc::gen::arbitrary<std::uint64_t>()).epoch(*rc::gen::inRange(0, 9));
  const std::size_t steps = (samples + global_batch - 1) / global_batch;
  std::vector<std::vector<std::uint32_t>> expected;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    std::vector<std::vector<std::uint32_t>> batches(steps);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<Share> shares = batch_shares(samples, global_batch, rank, ranks);
      RC_ASSERT(shares.size() == steps);
      for (std::size_t step = 0; step < steps; ++step)
        for (std::size_t i = shares[step].begin; i < shares[step].end; ++i) batches[step].push_back(order[i]);
    }
    std::vector<std::uint32_t> all;
    for (auto& batch : batches) {
      batch = sorted(batch);
      all.insert(all.end(), batch.begin(), batch.end());
    }
    RC_ASSERT(sorted(all) == sorted(order));  // each used sample exactly once
    if (ranks == 1) expected = batches;
    RC_ASSERT(batches == expected);
  }
}

RC_GTEST_PROP(Share, PartsAreContiguousAndNearEqual, ()) {
  const auto begin = *rc::gen::inRange<std::size_t>(0, 1000);
  const auto end = begin + *rc::gen::inRange<std::size_t>(0, 1000);
  const int ranks = *rc::gen::inRange(1, 20);
  std::size_t at = begin;
  for (int rank = 0; rank < ranks; ++rank) {
    const Share part = share(begin, end, rank, ranks);
    RC_ASSERT(part.begin == at);
    RC_ASSERT(part.size() == (end - begin) / ranks || part.size() == (end - begin + ranks - 1) / ranks);
    at = part.end;
  }
  RC_ASSERT(at == end);
}

TEST(EpochOrder, DependsOnSeedAndEpoch) {
  const EpochOrder order(1000, 0, 1);
  EXPECT_EQ(order.epoch(3), EpochOrder(1000, 0, 1).epoch(3));
  EXPECT_EQ(order.epoch(3), EpochOrder(1000, 1000, 1).epoch(3));
  EXPECT_NE(order.epoch(3), order.epoch(4));
  EXPECT_NE(order.epoch(3), EpochOrder(1000, 0, 2).epoch(3));
  EXPECT_NE(sorted(EpochOrder(1000, 10, 1).epoch(0)), sorted(EpochOrder(1000, 10, 2).epoch(0)));
}

// Written down once, so that no compiler or library may change an order that a run was recorded with.
TEST(EpochOrder, IsTheSameEverywhere) {
  EXPECT_EQ(EpochOrder(8, 0, 42).epoch(0), (std::vector<std::uint32_t>{5, 3, 0, 2, 6, 1, 7, 4}));
  EXPECT_EQ(EpochOrder(1000, 4, 42).epoch(7), (std::vector<std::uint32_t>{795, 938, 409, 234}));
}

TEST(EpochOrder, MoreSamplesIncludeTheFewer) {
  const std::vector<std::uint32_t> few = sorted(EpochOrder(500, 50, 9).epoch(0));
  const std::vector<std::uint32_t> more = sorted(EpochOrder(500, 200, 9).epoch(0));
  EXPECT_TRUE(std::includes(more.begin(), more.end(), few.begin(), few.end()));
}

// Each sample should come first about equally often: chi-squared with 9 degrees of freedom, limit at 1e-6.
TEST(EpochOrder, EveryPlaceIsEquallyLikely) {
  const EpochOrder order(10, 0, 5);
  constexpr int kEpochs = 20000;
  std::vector<std::vector<double>> counts(10, std::vector<double>(10));
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const auto items = order.epoch(epoch);
    for (std::size_t place = 0; place < 10; ++place) ++counts[place][items[place]];
  }
  for (const auto& row : counts) {
    double chi = 0;
    for (double count : row) chi += std::pow(count - kEpochs / 10, 2) / (kEpochs / 10);
    EXPECT_LT(chi, 45);
  }
}

TEST(EpochOrder, TooManySamples) {
  try {
    EpochOrder(100, 101, 0);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "samples=101, expected at most 100, the size of the training set (0 for all)");
  }
}

TEST(BatchShares, TheLastBatchMayBeSmall) {
  EXPECT_EQ(batch_shares(10, 4, 0, 1), (std::vector<Share>{{0, 4}, {4, 8}, {8, 10}}));
  EXPECT_EQ(batch_shares(9, 4, 1, 2), (std::vector<Share>{{2, 4}, {6, 8}, {9, 9}}));
  EXPECT_EQ(batch_shares(9, 4, 0, 2).back().size(), 1u);
  EXPECT_EQ(batch_shares(50000, 512, 0, 4).size(), 98u);
  EXPECT_THROW(batch_shares(10, 0, 0, 1), UsageError);
}

}  // namespace
}  // namespace accordion
