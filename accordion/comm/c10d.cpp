#include "accordion/comm/c10d.h"

#include <ATen/Functions.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/comm/c10d_error.h"

namespace accordion {
namespace {

// Tags tell calls apart, so that ranks whose calls differ stop instead of mixing up bytes. They count in the
// upper half of the range, because a group that is not only ours may carry messages with small tags.
constexpr std::uint64_t kFirstTag = 1u << 30;

at::Tensor view(const std::byte* data, std::size_t bytes) {
  // Torch has no tensor of constants; what is only sent is only read.
  return at::from_blob(const_cast<std::byte*>(data), {static_cast<std::int64_t>(bytes)}, at::kByte);
}

struct Ends {
  int rank, peer;
  std::size_t bytes;
  bool sends;
};

[[noreturn]] void fail(const Ends& ends) {
  throw Error("rank " + std::to_string(ends.rank) + (ends.sends ? ": sending " : ": receiving ") +
              std::to_string(ends.bytes) + " bytes " + (ends.sends ? "to" : "from") + " rank " +
              std::to_string(ends.peer) + ": " + reason_of_current_exception());
}

// Gloo lets go of the caller's memory when the work is gone.
class C10dTransfer final : public Transfer {
 public:
  C10dTransfer(const Ends& ends, const auto& start) : ends_(ends) {
    try {
      work_ = start();
    } catch (...) {
      fail(ends_);
    }
  }

  void wait() override {
    if (!work_) return;
    try {
      if (!work_->wait()) throw Error("aborted");
    } catch (...) {
      fail(ends_);
    }
    work_.reset();
  }

 private:
  const Ends ends_;
  c10::intrusive_ptr<c10d::Work> work_;
};

}  // namespace

C10dCommunicator::C10dCommunicator(c10::intrusive_ptr<c10d::ProcessGroup> group)
    : group_(std::move(group)), rank_(group_->getRank()), size_(group_->getSize()), view_(1) {}

int C10dCommunicator::tag() const {
  return static_cast<int>(kFirstTag | (call() & (kFirstTag - 1)));
}

std::unique_ptr<Transfer> C10dCommunicator::start_send(int to, std::span<const std::byte> bytes) {
  return std::make_unique<C10dTransfer>(Ends{rank_, to, bytes.size(), true}, [&] {
    view_[0] = view(bytes.data(), bytes.size());
    return group_->send(view_, to, tag());
  });
}

std::unique_ptr<Transfer> C10dCommunicator::start_receive(int from, std::span<std::byte> bytes) {
  return std::make_unique<C10dTransfer>(Ends{rank_, from, bytes.size(), false}, [&] {
    view_[0] = view(bytes.data(), bytes.size());
    return group_->recv(view_, from, tag());
  });
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
