// Ranks as processes that mpirun or srun started. Unlike the c10d communicator it has no timeouts: MPI waits
// for a rank that hangs, and its launcher ends the run when a rank dies.
#pragma once

#include <memory>

#include "accordion/comm/communicator.h"

namespace accordion {

// Starts MPI, unless somebody did before, and then also ends it. The communicators must be gone by then.
class MpiSession {
 public:
  // Throws Error if MPI cannot be called from several threads, which gradients and control traffic will do.
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // A new communicator over all ranks, whose messages do not meet those of another. Collective.
  std::unique_ptr<Communicator> communicator();

 private:
  bool ours_ = false;
};

}  // namespace accordion
