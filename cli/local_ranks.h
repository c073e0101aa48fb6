// A verb that is a group of processes: starts them on this machine, unless it is one of them already.
#pragma once

#include <functional>

#include "accordion/launch/place.h"

namespace accordion::cli {

// Where a launcher (netlab, torchrun, mpirun, srun, or ourselves) has given this process a place, `run` is called with it and
// with the threads it has. Elsewhere the program is started `workers` times with the same arguments. Gives the exit status.
int run_in_group(int workers, char** argv, const std::function<int(const Place&, int threads)>& run);

}  // namespace accordion::cli
