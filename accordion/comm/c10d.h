// Ranks as processes, over torch's process groups and stores.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/comm/group.h"
#include "accordion/comm/rendezvous.h"

namespace accordion {

// Over any process group that sends and receives from host memory. Failures throw an Error that names this
// rank, the operation and the peer; the group is of no use afterwards. Messages outlive no call, whatever
// happens.
class C10dCommunicator final : public Communicator {
 public:
  explicit C10dCommunicator(c10::intrusive_ptr<c10d::ProcessGroup> group);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Transfer> start_send(int to, std::span<const std::byte> bytes) override;
  std::unique_ptr<Transfer> start_receive(int from, std::span<std::byte> bytes) override;

  const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const { return group_; }

 private:
  void hang_up() override { group_.reset(); }
  int tag() const;

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  const int rank_;
  const int size_;
  std::vector<at::Tensor> view_;  // Kept between calls for its memory.
};

// Over groups that exist. If both are the same one, they share a communicator.
Group c10d_group(c10::intrusive_ptr<c10d::ProcessGroup> gradients,
                 c10::intrusive_ptr<c10d::ProcessGroup> control);

// Of ranks that share a store in which nobody else uses `prefix`. On the network interface of that name; empty: on the address
// of this host's name; if it has several, on one that other hosts can reach. Collective.
struct StoreMeeting {
  c10::intrusive_ptr<c10d::Store> store;
  int rank = 0, size = 1;
  std::string prefix = "accordion", interface = {};
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  Transport transport = Transport::kTcp;
};
Group c10d_group(const StoreMeeting& meeting);

// What carries the group's control traffic. Throws UsageError unless that is a process group.
c10::intrusive_ptr<c10d::ProcessGroup> control_process_group(Group& group);

}  // namespace accordion
