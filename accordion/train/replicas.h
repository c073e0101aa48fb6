// Replicas that should be equal, and are they? They drift apart by a mistake in what was decoded, or a bit that flipped in a
// rank's memory, and nothing else would show it.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "accordion/comm/communicator.h"

namespace accordion {

// Collective. Throws an Error on every rank that names the first tensor which differs, and, where most ranks agree, the ranks
// that do not. `when` is "after epoch 3, step 12".
void require_same_replicas(Communicator& control, const std::vector<std::string>& names,
                           const std::vector<torch::Tensor>& tensors, const std::string& when);

}  // namespace accordion
