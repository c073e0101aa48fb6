// The two communicators of a rank. Gradients and control may be used at the same time, each by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "accordion/comm/communicator.h"

namespace accordion {

// A communicator keeps alive what it stands on (a store, an MPI session), so a group is no more than the two.
// c10d_group.h and mpi_group.h make one over a network, loopback.h between threads.
class Group {
 public:
  // If both are the same one, the caller sees to it that only one thread at a time uses either.
  Group(std::shared_ptr<Communicator> gradients, std::shared_ptr<Communicator> control)
      : gradients_(std::move(gradients)), control_(std::move(control)) {}

  int rank() const { return gradients_->rank(); }
  int size() const { return gradients_->size(); }
  Communicator& gradients() { return *gradients_; }
  Communicator& control() { return *control_; }

  // What this rank has handed to the network so far.
  std::uint64_t sent_bytes() const {
    return gradients_->sent_bytes() + (control_ == gradients_ ? 0 : control_->sent_bytes());
  }

 private:
  std::shared_ptr<Communicator> gradients_, control_;
};

}  // namespace accordion
