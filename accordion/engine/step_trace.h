// One step as this rank lived it: when its buckets came, and what became of them.
#pragma once

#include <optional>
#include <vector>

#include "accordion/exchange/bucket_times.h"
#include "accordion/exchange/rounds.h"

namespace accordion {

struct BucketTrace {
  std::vector<Slice> slices;
  StepClock::time_point ready;  // Its values are there, and may be worked on.
  bool elsewhere = false;       // Reduced by other means: no times.
  BucketTimes times = {};
};

struct StepTrace {
  std::optional<StepClock::time_point> begin =
      {};  // The end of the step before, unless something else came in between.
  StepClock::time_point end = {};
  bool kept = true;
  std::vector<BucketTrace> buckets = {};  // As they were served.
};

}  // namespace accordion
