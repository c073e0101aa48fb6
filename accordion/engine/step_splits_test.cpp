#include "accordion/engine/step_splits.h"

#include <gtest/gtest.h>

namespace accordion {
namespace {

StepClock::time_point at(double ms) {
  return StepClock::time_point(
      std::chrono::duration_cast<StepClock::duration>(std::chrono::duration<double, std::milli>(1000 + ms)));
}

// Ready at 4 and 10 of 20 ms: the first bucket hides behind backward but for its last 2 ms on the wire.
StepTrace two_buckets() {
  StepTrace trace{.begin = at(0), .end = at(20)};
  trace.buckets.push_back(
      {{}, at(4), false, {at(4), at(5), at(13), {}, {{Pattern::kSum, 8, at(5), at(12)}}}});
  trace.buckets.push_back(
      {{}, at(10), false, {at(11), at(14), at(20), {}, {{Pattern::kSum, 8, at(15), at(18)}}}});
  return trace;
}

double sum(const StepSplit& split) {
  return split.compute_ms + split.encode_ms + split.wire_ms + split.decode_ms;
}

TEST(StepSplit, AddsUpToTheStep) {
  const StepSplit split = split_of(two_buckets());
  EXPECT_NEAR(split.compute_ms, 10, 1e-6);
  EXPECT_NEAR(split.wire_ms, 2 + 3, 1e-6);
  EXPECT_NEAR(split.decode_ms, 1 + 3, 1e-6);
  EXPECT_NEAR(split.encode_ms, 1, 1e-6);  // From 13, when the thread is free, to 14.
  EXPECT_NEAR(split.busy_wire_ms, 7 + 3, 1e-6);
  EXPECT_NEAR(sum(split), 20, 1e-6);
}

TEST(StepSplit, ABucketReducedElsewhereIsWaitedFor) {
  StepTrace trace{.begin = at(0), .end = at(20)};
  trace.buckets.push_back({{}, at(8), true, {}});
  EXPECT_NEAR(split_of(trace).wire_ms, 12, 1e-6);
  EXPECT_NEAR(sum(split_of(trace)), 20, 1e-6);
  trace.buckets.clear();
  EXPECT_NEAR(split_of(trace).compute_ms, 20, 1e-6);
}

TEST(StepSplits, AreTheMeanOfStepsThatWereSeenWhole) {
  StepSplits splits;
  EXPECT_FALSE(splits.take());
  StepTrace trace = two_buckets();
  splits.add(trace);
  trace.end = at(24);
  splits.add(trace);
  trace.begin.reset();
  splits.add(trace);
  trace = two_buckets();
  trace.kept = false;
  splits.add(trace);
  const auto mean = splits.take();
  ASSERT_TRUE(mean);
  EXPECT_NEAR(sum(*mean), 22, 1e-6);
  EXPECT_FALSE(splits.take());
}

}  // namespace
}  // namespace accordion
