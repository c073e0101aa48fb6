#include "accordion/comm/c10d.h"

#include <ATen/Functions.h>

#include <cassert>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/comm/c10d_error.h"

namespace accordion {
namespace {

// Tags tell calls apart, so that ranks whose calls differ stop instead of mixing up bytes. They count in the
// upper half of the range, because a group that is not only ours may carry messages with small tags.
constexpr std::uint32_t kFirstTag = 1u << 30;

at::Tensor view(const std::byte* data, std::size_t bytes) {
  // Torch has no tensor of constants; what is only sent is only read.
  return at::from_blob(const_cast<std::byte*>(data), {static_cast<std::int64_t>(bytes)}, at::kByte);
}

}  // namespace

C10dCommunicator::C10dCommunicator(c10::intrusive_ptr<c10d::ProcessGroup> group)
    : group_(std::move(group)), rank_(group_->getRank()), size_(group_->getSize()), view_(1) {}

void C10dCommunicator::all_to_all(std::span<const std::span<const std::byte>> send,
                                  std::span<const std::span<std::byte>> receive) {
  assert(send.size() == static_cast<std::size_t>(size_) && receive.size() == send.size());
  const int tag = static_cast<int>(kFirstTag | (calls_++ & (kFirstTag - 1)));
  try {
    // In step k everyone sends k ranks further, so that no rank is everybody's first.
    for (int step = 1; step < size_; ++step) {
      const int from = (rank_ - step + size_) % size_, to = (rank_ + step) % size_;
      start_receive(from, receive[static_cast<std::size_t>(from)], tag);
      start_send(to, send[static_cast<std::size_t>(to)], tag);
    }
    const auto own = send[static_cast<std::size_t>(rank_)];
    const auto target = receive[static_cast<std::size_t>(rank_)];
    assert(own.size() == target.size());
    if (!own.empty() && own.data() != target.data()) std::memcpy(target.data(), own.data(), own.size());
    for (const Transfer& transfer : transfers_) finish(transfer);
  } catch (...) {
    transfers_.clear();  // Gloo lets go of the caller's memory.
    throw;
  }
  transfers_.clear();
}

void C10dCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  assert(root >= 0 && root < size_);
  if (bytes.empty() || size_ == 1) return;
  try {
    c10d::BroadcastOptions options;
    options.rootRank = root;
    view_[0] = view(bytes.data(), bytes.size());
    group_->broadcast(view_, options)->wait();
  } catch (...) {
    throw Error("rank " + std::to_string(rank_) + ": broadcasting " + std::to_string(bytes.size()) +
                " bytes from rank " + std::to_string(root) + ": " + reason_of_current_exception());
  }
}

void C10dCommunicator::start_receive(int peer, std::span<std::byte> bytes, int tag) {
  if (bytes.empty()) return;
  try {
    view_[0] = view(bytes.data(), bytes.size());
    transfers_.push_back({group_->recv(view_, peer, tag), false, peer, bytes.size()});
  } catch (...) {
    fail(false, peer, bytes.size());
  }
}

void C10dCommunicator::start_send(int peer, std::span<const std::byte> bytes, int tag) {
  if (bytes.empty()) return;
  try {
    view_[0] = view(bytes.data(), bytes.size());
    transfers_.push_back({group_->send(view_, peer, tag), true, peer, bytes.size()});
  } catch (...) {
    fail(true, peer, bytes.size());
  }
}

void C10dCommunicator::finish(const Transfer& transfer) {
  try {
    if (!transfer.work->wait()) throw Error("aborted");
  } catch (...) {
    fail(transfer.sends, transfer.peer, transfer.bytes);
  }
}

void C10dCommunicator::fail(bool sends, int peer, std::size_t bytes) const {
  throw Error("rank " + std::to_string(rank_) + (sends ? ": sending " : ": receiving ") +
              std::to_string(bytes) + " bytes " + (sends ? "to" : "from") + " rank " + std::to_string(peer) +
              ": " + reason_of_current_exception());
}

Group c10d_group(c10::intrusive_ptr<c10d::ProcessGroup> gradients,
                 c10::intrusive_ptr<c10d::ProcessGroup> control) {
  auto second = std::make_shared<C10dCommunicator>(control);
  auto first = gradients == control ? second : std::make_shared<C10dCommunicator>(std::move(gradients));
  return {std::move(first), std::move(second)};
}

c10::intrusive_ptr<c10d::ProcessGroup> control_process_group(Group& group) {
  const auto* communicator = dynamic_cast<const C10dCommunicator*>(&group.control());
  if (!communicator) throw UsageError("this group does not stand on a process group of torch's");
  return communicator->process_group();
}

}  // namespace accordion
