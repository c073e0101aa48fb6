// What c10d's reducer asks of a process group, over any back end's control communicator: it broadcasts the order
// of buckets once and adds up which parameters were used. Gradients never go this way; the hook takes them.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "accordion/comm/communicator.h"

namespace accordion {

class ControlProcessGroup final : public c10d::ProcessGroup {
 public:
  // The communicator outlives it.
  explicit ControlProcessGroup(Communicator& control);

  const std::string getBackendName() const override { return "accordion"; }

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override;
  // Sums of 32-bit integers.
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override;

 private:
  Communicator& control_;
};

}  // namespace accordion
