// What a guard decides from what it knows: the levels that pay, and why each layer has its own.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "accordion/engine/step_costs.h"
#include "accordion/perf/pays.h"

namespace accordion {

// Levels that were probed, and the median of their steps.
using Probed = std::pair<std::vector<int>, double>;

inline bool all_dense(const std::vector<int>& levels) {
  return std::all_of(levels.begin(), levels.end(), [](int level) { return level == kDense; });
}

struct GuardChoice {
  std::vector<int> levels;  // Per tensor; kDense.
  double seconds;           // That a step will take.
  std::vector<std::string> reasons;
};

// What reasons call them: mild and strong, where there are two.
std::vector<std::string> level_names(std::span<const CodecOptions> levels);

// `may`: per tensor. `dense_seconds`: of a plain step, as measured. What was measured counts for more than what follows from parts:
// a choice that was probed takes what it took then, and others are longer than simulated by as much as those were.
GuardChoice choose(const StepCosts& costs, std::span<const int> may, const std::vector<Probed>& probed,
                   double dense_seconds, perf::Goal goal, std::span<const std::string> names);

// The same where nothing is known of parts: the best of what was probed.
GuardChoice choose_probed(std::span<const int> may, const std::vector<Probed>& probed, double dense_seconds,
                          perf::Goal goal, std::span<const std::string> names);

}  // namespace accordion
