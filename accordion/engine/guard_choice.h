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

// Levels that were probed, what their steps take, and whether it is known that they are no longer than dense ones.
struct Probed {
  std::vector<int> levels;
  double seconds;
  bool harmless;
};

// Foreseen to be so much shorter than dense steps that it need not be tried out before.
inline constexpr double kClearlyShorter = 0.9;

inline bool all_dense(const std::vector<int>& levels) {
  return std::all_of(levels.begin(), levels.end(), [](int level) { return level == kDense; });
}

struct GuardChoice {
  std::vector<int> levels;  // Per tensor; kDense.
  double seconds;           // That a step will take.
  std::vector<std::string> reasons;
  double
      simulated_seconds;  // The same by its parts alone; of levels that were probed, a test of what is known of them.
  bool foreseen;          // Not probed, and not so much better than dense that it need not be.
};

// What reasons call them: mild and strong, where there are two.
std::vector<std::string> level_names(std::span<const CodecOptions> levels);

// `may`: per tensor. `probed`: some of it perhaps stronger than may be by now. `dense_seconds`: of a plain step, as measured. What was
// measured counts for more than what follows from parts: a choice that was probed takes what it took then, and others are longer than
// simulated by as much as those were. `search`: whether a choice may be one that was not probed.
GuardChoice choose(const StepCosts& costs, std::span<const int> may, const std::vector<Probed>& probed,
                   double dense_seconds, perf::Goal goal, std::span<const std::string> names,
                   bool search = true);

// The same where nothing is known of parts: the best of what was probed.
GuardChoice choose_probed(std::span<const int> may, const std::vector<Probed>& probed, double dense_seconds,
                          perf::Goal goal, std::span<const std::string> names);

}  // namespace accordion
