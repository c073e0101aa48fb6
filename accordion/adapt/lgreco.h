// The mixture of levels that sends least among those whose total squared error is no more than that of one
// level for all layers. (Markov et al., "L-GreCo: Layerwise-adaptive gradient compression", 2024.)
#pragma once

#include <span>
#include <vector>

#include "accordion/compress/trial.h"

namespace accordion {

struct LgrecoRule {
  int uniform = 0;         // The level known to be good enough for all.
  int resolution = 10000;  // Steps into which the error budget is cut.
};

// A level a layer, by a dynamic programme over the budget. Layers without trials keep the uniform level. Nothing
// where there is no error to spend, or one that is not finite.
std::vector<int> cheapest_levels(std::span<const std::vector<Trial>> trials, const LgrecoRule& rule);

}  // namespace accordion
