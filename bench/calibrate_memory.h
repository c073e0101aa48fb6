// How much memory there is for the messages of other ranks.
#pragma once

#include <optional>

#include "accordion/comm/communicator.h"

namespace accordion::bench {

// In 10^9 bytes: half of what the host has available, shared by the ranks on it, and of all ranks the least. The other half is
// for what training holds besides, which was not measured: activations, residuals, input. None where a host does not tell.
std::optional<double> measure_memory_gb(Communicator& control, int local_ranks);

}  // namespace accordion::bench
