// A group of processes that mpirun or srun started, over MPI.
#pragma once

#include "accordion/comm/group.h"
#include "accordion/comm/rendezvous.h"

namespace accordion {

// All ranks of MPI_COMM_WORLD. Starts MPI, unless somebody did before, and then ends it with the last of the
// group's communicators. Collective.
Group mpi_group();

// The same for ranks that also know their places from elsewhere. Throws UsageError when MPI knows other ones: most
// often it was not mpirun that started them.
Group mpi_group(const Rendezvous& meeting);

}  // namespace accordion
