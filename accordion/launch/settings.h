// Settings that a process must have from its first instruction on, because libraries read them while they
// load: threads for OpenMP and OpenBLAS, and an allocator that keeps the pages of large tensors.
#pragma once

#include <cstdlib>
#include <map>
#include <string>

#include "accordion/launch/place.h"

namespace accordion {

// What to add to the environment of a process that computes with `threads` threads. What the user has set
// already is left out, and so stays as it is.
std::map<std::string, std::string> worker_environment(int threads, const GetVariable& get = ::getenv);

// For a process that somebody else launched: when variables are missing, sets them and runs the program again
// from the start with the same arguments, once. So call it first in main, before there are threads or open
// files. Returns true when all is set, false when the program could not be run again: then the allocator is
// set as far as a running process can, and the number of threads is the caller's to set.
bool ensure_settings(int threads, char* const* argv);

// Processors this process may run on.
int available_cores();

int threads_per_rank(int cores, int local_world);

// For a rank that finds itself at a place: what OMP_NUM_THREADS says; else all cores it is bound to, where
// its launcher bound it to some; else its share of the machine.
int threads_of_rank(const Place& place, const GetVariable& get);

}  // namespace accordion
