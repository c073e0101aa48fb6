// A group of processes that meet at a store and talk over Gloo.
#pragma once

#include "accordion/comm/group.h"
#include "accordion/comm/rendezvous.h"

namespace accordion {

// Meets the others and connects to them over Gloo. Collective; returns on all ranks or on none, and throws an
// Error that names who or what was missing when the time is up.
Group c10d_group(const Rendezvous& meeting);

}  // namespace accordion
