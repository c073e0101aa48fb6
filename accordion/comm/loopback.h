// N ranks as threads of one process, for tests.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/comm/group.h"

namespace accordion {

// One communicator per rank of a group of `ranks` threads.
std::vector<std::unique_ptr<Communicator>> make_loopback(int ranks);

// Runs `body` once per rank, each in a thread of its own, and rethrows the first exception after all have
// ended. A rank that throws releases the others from their collectives with an Error.
void run_loopback(int ranks, const std::function<void(Communicator&)>& body);

// The same with both communicators of a group.
void run_loopback_groups(int ranks, const std::function<void(Group&)>& body);

}  // namespace accordion
