// Messages between all ranks in an order that they share: in every place of it a rank sends to one other rank and
// receives from one. A rank starts a send when what it receives has come to within a short distance of that place,
// so all ranks keep the same pace, and a link serves one pair of ranks at a time. If everyone sent to a rank at once
// all that they have for it, their flows would starve each other on its link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "accordion/comm/communicator.h"

namespace accordion {

class Lockstep {
 public:
  using Action = std::function<void()>;
  static constexpr std::size_t kNone = SIZE_MAX;

  explicit Lockstep(Communicator& communicator) : communicator_(communicator) {}

  // Both append to the order, and of one place the send comes first. An empty message is not sent, but has its place.

  // Not before `needs` messages have been received. Returns the number of the send.
  std::size_t send(int to, std::span<const std::byte> bytes, std::size_t needs = 0);

  // `replaces`: the number of a send from the same bytes, which must have left before they are overwritten. `after` is
  // called when the message is there.
  void receive(int from, std::span<std::byte> bytes, std::size_t replaces = kNone, Action after = {});

  std::size_t receives() const { return receives_.size(); }

  void run();

 private:
  struct Send {
    int to;
    std::span<const std::byte> bytes;
    std::size_t needs;
    std::size_t place;  // How many receives come before it.
    std::unique_ptr<Transfer> transfer = nullptr;
  };
  struct Receive {
    int from;
    std::span<std::byte> bytes;
    std::size_t replaces;
    Action after;
    std::unique_ptr<Transfer> transfer = nullptr;
  };

  std::size_t messages_ahead() const;
  void ask(std::size_t received, std::size_t ahead);
  void start_sends(std::size_t received, std::size_t ahead);

  Communicator& communicator_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
  std::size_t started_ = 0, asked_ = 0;  // Of sends, of receives.
};

}  // namespace accordion
