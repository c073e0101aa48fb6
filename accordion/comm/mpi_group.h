// A group of processes that mpirun or srun started, over MPI.
#pragma once

#include "accordion/comm/group.h"

namespace accordion {

// All ranks of MPI_COMM_WORLD. Starts MPI, unless somebody did before, and then ends it with the last of the
// group's communicators. Collective.
Group mpi_group();

}  // namespace accordion
