#include "accordion/perf/published.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "accordion/perf/drawn_testing.h"

namespace accordion::perf::published {
namespace {

constexpr double kGbit = 1e9 / 8, kMB = 1e6;

struct Drawn {
  Training training;
  Method method;
  int workers;
  Network network;
};

Drawn drawn() {
  Draw draw(*rc::gen::arbitrary<std::uint64_t>());
  Drawn setting{.training = {.gradient_bytes = draw.log_uniform(1e6, 1e9),
                             .backward = draw.log_uniform(0.01, 1),
                             .slowdown = draw.uniform(1, 1.1)},
                .method = {.encode_decode = draw.log_uniform(1e-3, 1)},
                .workers = draw.integer(2, 128),
                .network = {draw.log_uniform(1e-6, 1e-3), draw.log_uniform(0.1, 1000) * kGbit}};
  const double bytes = setting.training.gradient_bytes / draw.log_uniform(1, 1000);
  if (draw.chance(0.5))
    setting.method.summed = {bytes / 2, bytes / 2};
  else {
    setting.method.gathered = {bytes / 2, bytes / 2};
    setting.method.decode_per_worker = draw.log_uniform(1e-5, 1e-2);
  }
  return setting;
}

TEST(Published, TableOfAggregation) {
  const Network network{1e-3, 1e9};
  EXPECT_DOUBLE_EQ(seconds(Aggregation::kRing, 1e6, 8, network), 14e-3 + 2e-3 * 7 / 8);
  EXPECT_DOUBLE_EQ(seconds(Aggregation::kTree, 1e6, 8, network), 6e-3 + 6e-3);
  EXPECT_DOUBLE_EQ(seconds(Aggregation::kParameterServer, 1e6, 8, network), 2e-3 + 14e-3);
  EXPECT_DOUBLE_EQ(seconds(Aggregation::kGather, 1e6, 8, network), 7e-3 + 7e-3);
  EXPECT_DOUBLE_EQ(seconds(Aggregation::kBroadcast, 1e6, 8, network), 3e-3 + 3e-3);
  for (const auto each : {Aggregation::kRing, Aggregation::kTree, Aggregation::kParameterServer,
                          Aggregation::kGather, Aggregation::kBroadcast})
    EXPECT_EQ(seconds(each, 1e6, 1, network), 0);
}

TEST(Published, PlainStep) {
  const Network network{1e-4, 1e9};
  const Training training{.gradient_bytes = 97 * kMB, .backward = 0.1, .slowdown = 1.1};
  ASSERT_EQ(training.buckets(), 4);
  const double last = 97e6 - 3.0 * (25 << 20);
  EXPECT_DOUBLE_EQ(training.last_bucket_bytes(), last);
  const auto ring = [&](double bytes) { return 2 * 7 * 1e-4 + 2 * bytes * 7 / 8 / 1e9; };
  EXPECT_DOUBLE_EQ(plain_seconds(training, 8, network), 3 * ring(25 << 20) + ring(last));
  const Training slow{.gradient_bytes = 97 * kMB, .backward = 1, .slowdown = 1.1};
  EXPECT_DOUBLE_EQ(plain_seconds(slow, 8, network), 1.1 + ring(last));
  const Training small{.gradient_bytes = 10 * kMB, .backward = 1, .slowdown = 1.1};
  EXPECT_DOUBLE_EQ(plain_seconds(small, 8, network), 1 + ring(10 * kMB))
      << "one bucket: nothing beside backward";
}

TEST(Published, CompressedSteps) {
  const Network network{1e-4, 1e9};
  const Training training{.gradient_bytes = 97 * kMB, .backward = 0.1};
  const Method low_rank{.encode_decode = 0.045, .summed = {1e6, 5e5, 2e5}};
  EXPECT_DOUBLE_EQ(method_seconds(low_rank, training, 4, network), 0.145 + 3 * 6e-4 + 1.5 * 1.7e-3);
  const Method sparse{.encode_decode = 0.02, .decode_per_worker = 0.003, .gathered = {4e5, 4e5}};
  EXPECT_DOUBLE_EQ(method_seconds(sparse, training, 4, network), 0.12 + 0.012 + 2 * 3e-4 + 3 * 8e-4);
}

// Where plain DDP waits for its network, and where it waits for backward.
TEST(Published, BreakEvenBandwidthIsTheClosedForm) {
  const int workers = 16;
  const double share = 2 * 15.0 / 16, latency = 1e-5, call = 2 * 15 * latency;
  const Training training{.gradient_bytes = 100 << 20, .backward = 0.2, .slowdown = 1.05};
  const Method method{.encode_decode = 0.12, .summed = {1e6, 1e6, 1e6}};
  const auto turns = break_even_bandwidths(method, training, workers, latency);
  ASSERT_EQ(turns.size(), 1u);
  const double bound = share * ((100 << 20) - 3e6) / (0.2 + 0.12 + (3 - 4) * call);
  EXPECT_NEAR(turns[0] / bound, 1, 1e-6);
  EXPECT_TRUE(wins(method, training, workers, {latency, 0.9 * turns[0]}));
  EXPECT_FALSE(wins(method, training, workers, {latency, 1.1 * turns[0]}));

  const Method cheap{.encode_decode = 0.013, .summed = {1e6, 1e6, 1e6}};
  const auto hidden = break_even_bandwidths(cheap, training, workers, latency);
  ASSERT_EQ(hidden.size(), 1u);
  const double bound_by_backward = share * ((25 << 20) - 3e6) / (0.013 - 0.05 * 0.2 + (3 - 1) * call);
  EXPECT_NEAR(hidden[0] / bound_by_backward, 1, 1e-6);

  const Method free{.encode_decode = 0.001, .summed = {1e6}};
  EXPECT_TRUE(break_even_bandwidths(free, training, workers, latency).empty());
  EXPECT_TRUE(wins(free, training, workers, {latency, 500 * kGbit}));
}

TEST(Published, NeededRatio) {
  const Training training{.gradient_bytes = 97 * kMB, .backward = 0.1};
  const Network network{1e-5, 10 * kGbit};
  Method method{.encode_decode = 0.02, .summed = {1, 1}};
  const double target = plain_seconds(training, 32, network);
  const auto ratio = needed_ratio(method, training, 32, network, target);
  ASSERT_TRUE(ratio);
  method.summed = {48.5 * kMB / *ratio, 48.5 * kMB / *ratio};
  EXPECT_NEAR(method_seconds(method, training, 32, network), target, 1e-9);
  method.encode_decode = 1;
  EXPECT_FALSE(needed_ratio(method, training, 32, network, target));
}

// (p-1) S < 2G (p-1)/p, so p < 2G/S, with nothing else counted and everything exposed.
TEST(Published, GatheringPaysForTwiceTheRatioOfWorkers) {
  const Network network{0, 1 * kGbit};
  const Training training{.gradient_bytes = 20 * kMB};  // One bucket.
  const auto gather = [](double ratio) { return Method{.gathered = {20 * kMB / ratio}}; };
  EXPECT_EQ(loses_from(gather(32), training, network, 1000), 64);
  EXPECT_EQ(loses_from(gather(50), training, network, 1000), 100);
  EXPECT_EQ(loses_from(gather(5), training, network, 1000), 10);
  EXPECT_EQ(loses_from(gather(1000), training, network, 1000), std::nullopt);
  Method decoding = gather(50);
  decoding.decode_per_worker = 1e-3;
  EXPECT_LT(*loses_from(decoding, training, network, 1000), 100);
}

RC_GTEST_PROP(Published, OneWorkerOnlyComputes, ()) {
  const Drawn it = drawn();
  RC_ASSERT(plain_seconds(it.training, 1, it.network) == it.training.backward);
  RC_ASSERT(method_seconds(it.method, it.training, 1, it.network) ==
            it.training.backward + it.method.encode_decode + it.method.decode_per_worker);
}

RC_GTEST_PROP(Published, NoStepIsLongerOnAFasterNetwork, ()) {
  const Drawn it = drawn();
  const Network faster{it.network.latency, it.network.bandwidth * 1.5};
  RC_ASSERT(plain_seconds(it.training, it.workers, faster) <=
            plain_seconds(it.training, it.workers, it.network));
  RC_ASSERT(method_seconds(it.method, it.training, it.workers, faster) <=
            method_seconds(it.method, it.training, it.workers, it.network));
}

RC_GTEST_PROP(Published, PlainTakesAtLeastItsSlowedBackward, ()) {
  const Drawn it = drawn();
  const double slowdown = it.training.buckets() == 1 ? 1 : it.training.slowdown;
  RC_ASSERT(plain_seconds(it.training, it.workers, it.network) >= slowdown * it.training.backward);
}

RC_GTEST_PROP(Published, MessagesOfFullSizeNeverWin, ()) {
  Drawn it = drawn();
  it.training.slowdown = 1;
  Method same{.summed = std::vector<double>(static_cast<std::size_t>(it.training.buckets() - 1),
                                            it.training.bucket_bytes)};
  same.summed.push_back(it.training.last_bucket_bytes());
  RC_ASSERT(method_seconds(same, it.training, it.workers, it.network) >=
            plain_seconds(it.training, it.workers, it.network) * (1 - 1e-12));
}

RC_GTEST_PROP(Published, SumsAreBoundedInWorkersAndGathersAreNot, ()) {
  const Drawn it = drawn();
  const Network network{0, it.network.bandwidth};
  const double once = 1e6 / network.bandwidth;
  RC_ASSERT(seconds(Aggregation::kRing, 1e6, 1 << 20, network) <= 2 * once);
  RC_ASSERT(seconds(Aggregation::kGather, 1e6, 1 << 20, network) > 1e6 * once);
}

RC_GTEST_PROP(Published, BreakEvenIsWhereBothTakeAsLong, ()) {
  const Drawn it = drawn();
  for (const double bandwidth :
       break_even_bandwidths(it.method, it.training, it.workers, it.network.latency)) {
    const Network network{it.network.latency, bandwidth};
    const double plain = plain_seconds(it.training, it.workers, network);
    RC_ASSERT(std::abs(method_seconds(it.method, it.training, it.workers, network) / plain - 1) < 1e-6);
  }
}

}  // namespace
}  // namespace accordion::perf::published
