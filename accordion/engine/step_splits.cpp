#include "accordion/engine/step_splits.h"

#include <algorithm>
#include <utility>

namespace accordion {
namespace {

double ms_between(StepClock::time_point begin, StepClock::time_point end) {
  return 1e3 * std::max(0.0, seconds_between(begin, end));
}

void add_to(StepSplit& sum, const StepSplit& split, double factor) {
  for (const auto part : {&StepSplit::compute_ms, &StepSplit::encode_ms, &StepSplit::wire_ms,
                          &StepSplit::decode_ms, &StepSplit::busy_wire_ms})
    sum.*part += factor * (split.*part);
}

}  // namespace

StepSplit split_of(const StepTrace& trace) {
  StepSplit split;
  // Backward may take until the step's end, where nothing is left to exchange after it.
  const auto computed =
      trace.buckets.empty() ? trace.end : std::clamp(trace.buckets.back().ready, *trace.begin, trace.end);
  split.compute_ms = ms_between(*trace.begin, computed);
  // One thread runs buckets one after the other: each from where it is prepared and the one before has ended.
  StepClock::time_point before = computed;
  double worked = 0;
  for (const BucketTrace& bucket : trace.buckets) {
    if (bucket.elsewhere) continue;
    const BucketTimes& times = bucket.times;
    for (const CollectiveTime& message : times.collectives) {
      split.busy_wire_ms += ms_between(message.begin, message.end);
      split.wire_ms += ms_between(std::max(message.begin, computed), std::max(message.end, computed));
    }
    worked += ms_between(std::max(times.prepare_end, before), times.end);
    before = std::max(before, times.end);
  }
  split.decode_ms = std::max(0.0, worked - split.wire_ms);
  // What is left is waiting: for the thread that prepares, or for what is reduced elsewhere, which keeps no times.
  const bool elsewhere = std::any_of(trace.buckets.begin(), trace.buckets.end(),
                                     [](const BucketTrace& bucket) { return bucket.elsewhere; });
  (elsewhere ? split.wire_ms : split.encode_ms) +=
      std::max(0.0, ms_between(computed, trace.end) - split.wire_ms - split.decode_ms);
  return split;
}

void StepSplits::add(const StepTrace& trace) {
  if (!trace.begin || !trace.kept) return;
  add_to(sum_, split_of(trace), 1);
  ++steps_;
}

std::optional<StepSplit> StepSplits::take() {
  const std::int64_t steps = std::exchange(steps_, 0);
  const StepSplit sum = std::exchange(sum_, {});
  if (steps == 0) return std::nullopt;
  StepSplit mean;
  add_to(mean, sum, 1.0 / static_cast<double>(steps));
  return mean;
}

}  // namespace accordion
