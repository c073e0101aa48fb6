// What a codec setting was found to lose and to cost when it was tried (try_levels.h). Controllers choose levels by this.
#pragma once

namespace accordion {

struct Trial {
  double error = 0;  // The squared norm of what is lost.
  double bytes = 0;  // What one rank sends in a step.
};

// How a low-rank codec's error is found: by a few of its own steps, for a handful of low ranks; or from all singular
// values at once, where ranks are many or high.
enum class LowRankError { kPowerSteps, kSingularValues };

}  // namespace accordion
