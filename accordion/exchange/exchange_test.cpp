#include "accordion/exchange/exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "accordion/base/noise_testing.h"
#include "accordion/comm/loopback.h"

namespace accordion {
namespace {

const std::vector<TensorInfo> kTensors = {{"a", {{7, 3}}}, {"b", {{5}}}, {"c", {{64, 65}}}};

// Both layouts hold the same three tensors in another order, so that chunk boundaries fall elsewhere.
std::vector<Slice> layout(bool reversed) {
  std::vector<int> order = reversed ? std::vector{2, 1, 0} : std::vector{0, 1, 2};
  std::vector<Slice> slices;
  std::size_t offset = 0;
  for (int tensor : order) {
    const std::size_t count = kTensors[static_cast<std::size_t>(tensor)].shape.count();
    slices.push_back({tensor, offset, count});
    offset += count;
  }
  return slices;
}

// Rank `rank`'s bucket in that layout, with the tensors' values independent of the layout.
std::vector<float> bucket_of(int rank, const std::vector<Slice>& slices) {
  std::vector<float> bucket(slices.back().offset + slices.back().count);
  for (const Slice& slice : slices) {
    const auto values = noise(slice.count, static_cast<unsigned>(100 * rank + slice.tensor));
    std::copy(values.begin(), values.end(), bucket.begin() + static_cast<std::ptrdiff_t>(slice.offset));
  }
  return bucket;
}

TEST(Exchange, MeanDoesNotDependOnTheBucketsLayout) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    std::mutex mutex;
    std::map<int, std::vector<float>> first;  // per tensor, whoever came first
    run_loopback(ranks, [&](Communicator& comm) {
      Exchange exchange(comm, kTensors, {});
      for (bool reversed : {false, true}) {
        const auto slices = layout(reversed);
        auto bucket = bucket_of(comm.rank(), slices);
        exchange.mean(bucket, slices);
        exchange.end_step();
        std::lock_guard lock(mutex);
        for (const Slice& slice : slices) {
          const auto view = std::span(bucket).subspan(slice.offset, slice.count);
          const auto [found, fresh] = first.try_emplace(slice.tensor, view.begin(), view.end());
          EXPECT_TRUE(fresh || std::equal(view.begin(), view.end(), found->second.begin())) << ranks;
        }
      }
    });
    // And it is the mean.
    const auto slices = layout(false);
    for (const Slice& slice : slices)
      for (std::size_t i = 0; i < slice.count; ++i) {
        double sum = 0;
        for (int r = 0; r < ranks; ++r)
          sum += noise(slice.count, static_cast<unsigned>(100 * r + slice.tensor))[i];
        ASSERT_NEAR(first[slice.tensor][i], sum / ranks, 1e-5);
        if (i > 20) break;
      }
  }
}

TEST(Exchange, WeighsRanksByTheirSamples) {
  run_loopback(3, [](Communicator& comm) {
    Exchange exchange(comm, {{"w", {{1}}}}, {});
    const double samples[] = {5, 2, 0}, total = 7;
    exchange.set_weight(samples[comm.rank()] * 3 / total);
    std::vector<double> gradient = {comm.rank() == 2 ? 1000.0 : 10.0 * (comm.rank() + 1)};
    exchange.mean(gradient, {});
    EXPECT_NEAR(gradient[0], (5 * 10.0 + 2 * 20.0) / 7, 1e-12);
  });
}

// In single precision, dense and through codecs that lose nothing: what everyone uses.
TEST(Exchange, WeighsRanksByTheirSamplesWhateverTheCodec) {
  const std::vector<TensorInfo> tensors = {{"w", {{40, 30}}}, {"b", {{9}}}};
  const std::vector<Slice> slices = {{0, 0, 1200}, {1, 1200, 9}};
  for (const char* codec : {"none", "topk:keep=1", "randomk:keep=1", "fp16", "threshold:lambda=1e-30"})
    run_loopback(3, [&](Communicator& comm) {
      Exchange exchange(comm, tensors, {.levels = {parse_codec(codec)}, .routing = {.published = true}});
      const double samples[] = {5, 2, 0}, total = 7;
      exchange.set_weight(samples[comm.rank()] * 3 / total);
      auto bucket = noise(1209, static_cast<unsigned>(comm.rank()));
      exchange.mean(bucket, slices);
      exchange.end_step();
      const auto first = noise(1209, 0), second = noise(1209, 1);
      for (std::size_t i = 0; i < bucket.size(); ++i)
        ASSERT_NEAR(bucket[i], (5 * first[i] + 2 * second[i]) / 7, 4e-3) << codec << " at " << i;
    });
}

TEST(Exchange, CountsWhatItSends) {
  for (int ranks : {1, 3, 4})
    run_loopback(ranks, [&](Communicator& comm) {
      Exchange exchange(comm, kTensors, {});
      const auto slices = layout(false);
      const std::uint64_t n = slices.back().offset + slices.back().count;
      for (int step = 0; step < 2; ++step) {
        auto bucket = bucket_of(comm.rank(), slices);
        exchange.mean(bucket, slices);
        exchange.end_step();
      }
      const EpochStats stats = exchange.take_epoch_stats();
      EXPECT_EQ(stats.steps, 2);
      EXPECT_EQ(stats.traffic.paper_floats, 2 * n);
      EXPECT_EQ(stats.traffic.payload_bytes, 8 * n);
      EXPECT_EQ(stats.traffic.wire_bytes, 2 * 8 * n * (static_cast<std::uint64_t>(ranks) - 1) / ranks);
      EXPECT_EQ(exchange.take_epoch_stats().traffic, Traffic{}) << "taking resets";
    });
}

// Whatever the collective: sums, gathers, what is scattered, several rounds, lengths that depend on the gradient.
TEST(Exchange, EveryByteOfThePayloadIsSomeTensors) {
  const std::vector<TensorInfo> tensors = {{"w", {{40, 30}}}, {"b", {{9}}}, {"v", {{30, 40}}}};
  const std::vector<Slice> slices = {{0, 0, 1200}, {1, 1200, 9}, {2, 1209, 1200}};
  for (const char* codec : {"none", "fp16", "topk:keep=0.05", "powersgd:approx-rank=2", "qsgd:bits=4",
                            "sign-vote", "sign-scaled", "terngrad", "threshold:lambda=1", "atomo"})
    run_loopback(3, [&](Communicator& comm) {
      Exchange exchange(comm, tensors, {.levels = {parse_codec(codec)}});
      for (unsigned step = 0; step < 2; ++step) {
        auto bucket = noise(2409, 3 * step + static_cast<unsigned>(comm.rank()));
        exchange.mean(bucket, slices);
        exchange.end_step();
      }
      const EpochStats stats = exchange.take_epoch_stats();
      ASSERT_EQ(stats.tensor_bytes.size(), 3u);
      EXPECT_EQ(stats.tensor_bytes[1], 2 * 9 * sizeof(float)) << codec;
      EXPECT_GT(stats.tensor_bytes[2], 0u) << codec;
      EXPECT_EQ(stats.tensor_bytes[0] + stats.tensor_bytes[1] + stats.tensor_bytes[2],
                stats.traffic.payload_bytes)
          << codec;
      EXPECT_EQ(exchange.take_epoch_stats().tensor_bytes[0], 0u) << "taking resets";
    });
}

TEST(Exchange, NonFiniteGradientsReachEveryRank) {
  run_loopback(3, [](Communicator& comm) {
    Exchange exchange(comm, {{"w", {{3}}}}, {});
    std::vector<float> gradient = {1, comm.rank() == 1 ? std::nanf("") : 1.0f, 1};
    const std::vector<Slice> slices = {{0, 0, 3}};
    exchange.mean(gradient, slices);
    exchange.end_step();
    EXPECT_TRUE(std::isnan(gradient[1]));
    EXPECT_EQ(gradient[0], 1.0f);
  });
}

}  // namespace
}  // namespace accordion
