#include "accordion/comm/mpi_group.h"

#include <string>

#include "accordion/base/error.h"
#include "accordion/comm/mpi.h"

namespace accordion {
namespace {

// In this order: the communicator goes before the session it speaks through.
struct Member {
  std::shared_ptr<MpiSession> session;
  std::unique_ptr<Communicator> communicator;
};

std::shared_ptr<Communicator> member(const std::shared_ptr<MpiSession>& session) {
  const auto both = std::make_shared<Member>(Member{session, session->communicator()});
  return {both, both->communicator.get()};
}

}  // namespace

Group mpi_group() {
  const auto session = std::make_shared<MpiSession>();
  auto gradients = member(session);
  return {std::move(gradients), member(session)};
}

Group mpi_group(const Rendezvous& meeting) {
  Group group = mpi_group();
  if (group.rank() != meeting.rank || group.size() != meeting.size)
    throw UsageError("backend=mpi: MPI made this rank " + std::to_string(group.rank()) + " of " +
                     std::to_string(group.size()) + ", but it was started as rank " +
                     std::to_string(meeting.rank) + " of " + std::to_string(meeting.size) +
                     "; start the ranks with mpirun or with an srun that speaks to MPI");
  return group;
}

}  // namespace accordion
