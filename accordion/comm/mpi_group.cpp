#include "accordion/comm/mpi_group.h"

#include "accordion/comm/mpi.h"

namespace accordion {
namespace {

// In this order: the communicator goes before the session it speaks through.
struct Member {
  std::shared_ptr<MpiSession> session;
  std::unique_ptr<Communicator> communicator;
};

std::shared_ptr<Communicator> member(const std::shared_ptr<MpiSession>& session) {
  const auto both = std::make_shared<Member>(session, session->communicator());
  return {both, both->communicator.get()};
}

}  // namespace

Group mpi_group() {
  const auto session = std::make_shared<MpiSession>();
  auto gradients = member(session);
  return {std::move(gradients), member(session)};
}

}  // namespace accordion
