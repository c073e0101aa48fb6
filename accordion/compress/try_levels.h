// Tries codec settings on one gradient, here and without sending it.
#pragma once

#include <span>
#include <vector>

#include "accordion/compress/codecs.h"
#include "accordion/compress/trial.h"

namespace accordion {

// One trial a level. Empty where the tensor goes dense at all of them.
std::vector<Trial> try_levels(std::span<const float> gradient, const Shape& shape,
                              std::span<const CodecOptions> levels, int world, const Routing& routing,
                              LowRankError method = LowRankError::kPowerSteps);

}  // namespace accordion
