// A group of processes that meet at a store of torch's.
#pragma once

#include "accordion/comm/group.h"
#include "accordion/comm/rendezvous.h"

namespace accordion {

// Meets the others and connects to them. Collective; returns on all ranks or on none, and throws an Error that names
// who or what was missing when the time is up.
Group c10d_group(const Rendezvous& meeting);

// The same over Gloo, whatever the meeting says.
Group gloo_group(const Rendezvous& meeting);

}  // namespace accordion
