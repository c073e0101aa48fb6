// Which level each layer is worth, of those it may get.
#pragma once

#include <vector>

#include "accordion/perf/step.h"

namespace accordion::perf {

enum class Goal {
  kFastest,  // The shortest step; of choices within 1 % of it, the mildest: traffic that is hidden anyway is accuracy for free.
  kHarmless,  // The least traffic whose step is no longer than with all layers dense.
};

// Times the shortest step: how much longer one may be for the sake of accuracy.
inline constexpr double kMilder = 1.01;

struct Choice {
  std::vector<int> levels;  // kDense, or a place in the layer's levels.
  double seconds = 0, wire_bytes = 0;
  double dense_seconds = 0, dense_wire_bytes = 0;  // With all layers dense.
};

Choice what_pays(const StepModel& model, Goal goal);

}  // namespace accordion::perf
