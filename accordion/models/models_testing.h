// For tests of models.
#pragma once

#include "accordion/models/network.h"

namespace accordion {

// A narrow model's squeeze has a single unit, and where that one is at rest nothing around it has a gradient.
inline void wake_squeezes(Network& model) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model.named_parameters())
    if (parameter.key().ends_with("squeeze.bias")) parameter.value().fill_(1);
}

}  // namespace accordion
