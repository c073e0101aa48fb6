// One rank of our DistributedDataParallel, doing the work of `accordion bench ddp` on command;
// bench/ddp_peer.py is the same with PyTorch's.
#pragma once

#include <string>

#include "accordion/comm/rendezvous.h"

namespace accordion::bench {

struct WorkerOptions {
  std::string model;
  int batch, channels, size, classes, threads;
};

// Reads one command a line from standard input and answers each with one line on standard output:
//   weights FILE       writes the weights (float32, in registration order) on rank 0; answers "ok"
//   verify FILE        takes the gradient of one batch and writes it on rank 0; answers "ok LOSS"
//   step               one training step; answers "ok SECONDS BUSY EXPOSED"
// Returns at the end of standard input.
void run_ddp_worker(const Rendezvous& meeting, const WorkerOptions& options);

}  // namespace accordion::bench
