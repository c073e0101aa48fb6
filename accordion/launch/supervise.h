// Starts the ranks of a group on this machine, shows what they print, and ends them together: when one dies,
// the others, which would wait for it for ever, are stopped, and the one that died first is named.
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

#include "accordion/launch/child.h"

namespace accordion {

struct SuperviseOptions {
  double grace_seconds = 5;  // From SIGTERM to SIGKILL, after a rank has died.
  double stop_seconds = 60;  // The same after a signal to us: the ranks may want to write a checkpoint.
  int first_rank = 0;        // Of the workers.
  int out = STDOUT_FILENO;   // Where the ranks' output goes.
  int err = STDERR_FILENO;
};

struct Ending {
  int status = 0;       // 0 when all ranks exited 0; 2 when the first to fail exited 2; else 1.
  int interrupted = 0;  // The SIGINT, SIGTERM or SIGHUP that we got and passed on as SIGTERM.
  std::string message;  // Why the status is not 0: `rank 1 exited with status 1; its last words: ...`
};

// Worker i is rank first_rank + i. Throws Error, with no process left behind, when one cannot be started. A second SIGINT
// kills all at once.
Ending supervise(const std::vector<WorkerSpec>& workers, const SuperviseOptions& options = {});

}  // namespace accordion
