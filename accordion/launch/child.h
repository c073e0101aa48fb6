// Starts one process whose standard output and error come to us through pipes.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "accordion/base/unique_fd.h"

namespace accordion {

struct WorkerSpec {
  std::vector<std::string> argv;                   // argv[0] without a slash is looked up in PATH.
  std::map<std::string, std::string> environment;  // Added to ours.
  std::filesystem::path folder = {};               // Where it starts; empty for ours.
};

enum class ChildInput { kNone, kPipe };

struct Child {
  pid_t pid = -1;     // Also the number of its process group.
  UniqueFd pidfd;     // Readable when it has ended; not open where the kernel has no such thing.
  UniqueFd in;        // Its standard input, where that is a pipe.
  UniqueFd out, err;  // Do not block.
};

// The child leads a process group, so that Ctrl-C at the terminal reaches only us, reads nothing unless
// given a pipe, and dies with the calling thread. Throws Error, naming the program, when it cannot be
// started.
Child start_child(const WorkerSpec& spec, ChildInput input = ChildInput::kNone);

}  // namespace accordion
