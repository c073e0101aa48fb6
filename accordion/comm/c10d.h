// Ranks as processes, over torch's process groups.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include "accordion/comm/communicator.h"
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
  void all_to_all(std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override;
  void broadcast(std::span<std::byte> bytes, int root) override;

 private:
  struct Transfer {
    c10::intrusive_ptr<c10d::Work> work;
    bool sends;
    int peer;
    std::size_t bytes;
  };
  void start_receive(int peer, std::span<std::byte> bytes, int tag);
  void start_send(int peer, std::span<const std::byte> bytes, int tag);
  void finish(const Transfer& transfer);
  [[noreturn]] void fail(bool sends, int peer, std::size_t bytes) const;

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  const int rank_;
  const int size_;
  std::uint32_t calls_ = 0;
  // Kept between calls for their memory.
  std::vector<Transfer> transfers_;
  std::vector<at::Tensor> view_;
};

// The two communicators of a rank. Gradients and control may be used at the same time, each by one thread.
class Group {
 public:
  // Meets the others and connects to them over Gloo. Collective; returns on all ranks or on none, and throws
  // an Error that names who or what was missing when the time is up.
  explicit Group(const Rendezvous& meeting);

  // Over groups that exist. If both are the same one, they share a communicator: then the caller sees to it
  // that only one thread at a time uses either.
  Group(c10::intrusive_ptr<c10d::ProcessGroup> gradients, c10::intrusive_ptr<c10d::ProcessGroup> control);

  int rank() const { return gradients_->rank(); }
  int size() const { return gradients_->size(); }
  Communicator& gradients() { return *gradients_; }
  Communicator& control() { return *control_; }
  const c10::intrusive_ptr<c10d::ProcessGroup>& control_group() const { return control_group_; }

 private:
  // Rank 0 may serve the others from it as long as they live.
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroup> control_group_;
  std::shared_ptr<Communicator> gradients_, control_;
};

}  // namespace accordion
