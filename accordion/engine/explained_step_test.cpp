#include "accordion/engine/explained_step.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "accordion/comm/loopback.h"

namespace accordion {
namespace {

const std::vector<TensorInfo> kTensors = {{"a", {{20, 10}}}, {"b", {{30, 10}}}, {"c", {{10}}}};
const std::vector<int> kPlain(3, kDense);

// Plain, of buckets that are ready at as many ms; each is summed in a millisecond.
StepTrace step(const std::vector<std::pair<double, std::vector<int>>>& buckets) {
  const auto at = [](double ms) {
    return StepClock::time_point(std::chrono::duration_cast<StepClock::duration>(
        std::chrono::duration<double, std::milli>(1000 + ms)));
  };
  StepTrace trace{.begin = at(0)};
  for (const auto& [ready, tensors] : buckets) {
    BucketTrace& bucket = trace.buckets.emplace_back();
    bucket.ready = at(ready);
    std::size_t count = 0;
    for (const int tensor : tensors) {
      const std::size_t own = kTensors[static_cast<std::size_t>(tensor)].shape.count();
      bucket.slices.push_back({tensor, count, own});
      count += own;
    }
    bucket.times = {
        at(ready), at(ready), at(ready + 1), {}, {{Pattern::kSum, 4 * count, at(ready), at(ready + 1)}}};
    trace.end = at(ready + 1);
  }
  return trace;
}

const StepTrace kBefore = step({{10, {2}}, {20, {1}}, {30, {0}}}), kAfter = step({{40, {2, 1}}, {80, {0}}}),
                kLater = step({{40, {2}}, {100, {1, 0}}});

void in_a_group_of_one(const std::function<void(Communicator&, const Exchange&)>& body) {
  run_loopback(1, [&](Communicator& comm) {
    const Exchange exchange(comm, kTensors, {.levels = {NoneOptions{}}});
    body(comm, exchange);
  });
}

TEST(RecentSteps, ExplainTheLastBuckets) {
  in_a_group_of_one([](Communicator& comm, const Exchange& exchange) {
    RecentSteps recent;
    for (int k = 0; k < 5; ++k) recent.add(kBefore, kPlain);
    for (const auto& [changed, end] : {std::pair(&kAfter, 0.081), std::pair(&kLater, 0.101)}) {
      recent.add(*changed, kPlain);
      const auto explained = recent.explain(comm, nullptr, exchange);
      ASSERT_TRUE(explained);
      EXPECT_EQ(explained->measured.buckets.size(), 2u);
      EXPECT_NEAR(explained->measured.seconds, end, 1e-6) << "not those before it";
      EXPECT_EQ(explained->predicted.buckets.size(), 2u);
      EXPECT_NEAR(explained->predicted.seconds, end, 1e-3);
    }
  });
}

TEST(RecentSteps, AreForeseenByWhatWasLearnedFromTheSameBuckets) {
  in_a_group_of_one([](Communicator& comm, const Exchange& exchange) {
    StepCosts costs(exchange, 1);
    EXPECT_FALSE(costs.learned_with({}));
    const StepTrace slower = step({{10, {2}}, {20, {1}}, {60, {0}}});
    std::vector<std::vector<Slice>> buckets;
    for (const BucketTrace& bucket : slower.buckets) buckets.push_back(bucket.slices);
    costs.learn(std::vector(3, watched_step(slower, kPlain)), buckets);
    RecentSteps recent;
    recent.add(kBefore, kPlain);
    EXPECT_NEAR(recent.explain(comm, &costs, exchange)->predicted.seconds, 0.061, 1e-3);
    recent.add(kAfter, kPlain);
    const auto explained = recent.explain(comm, &costs, exchange);
    EXPECT_EQ(explained->predicted.buckets.size(), 2u);
    EXPECT_NEAR(explained->predicted.seconds, 0.081, 1e-3);
  });
}

}  // namespace
}  // namespace accordion
