// Tries codec settings on one gradient, here and without sending it: what each would lose, and what it would
// cost. Controllers choose levels by this.
#pragma once

#include <span>
#include <vector>

#include "accordion/compress/codecs.h"

namespace accordion {

struct Trial {
  double error = 0;  // The squared norm of what is lost.
  double bytes = 0;  // What one rank sends in a step.
};

// How a low-rank codec's error is found: by a few of its own steps, for a handful of low ranks; or from all singular
// values at once, where ranks are many or high.
enum class LowRankError { kPowerSteps, kSingularValues };

// One trial a level. Empty where the tensor goes dense at all of them.
std::vector<Trial> try_levels(std::span<const float> gradient, const Shape& shape,
                              std::span<const CodecOptions> levels, int world, const Routing& routing,
                              LowRankError method = LowRankError::kPowerSteps);

}  // namespace accordion
