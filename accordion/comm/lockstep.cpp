#include "accordion/comm/lockstep.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "accordion/comm/pace.h"

namespace accordion {

std::size_t Lockstep::send(int to, std::span<const std::byte> bytes, std::size_t needs) {
  sends_.push_back({to, bytes, needs, receives_.size()});
  return sends_.size() - 1;
}

void Lockstep::receive(int from, std::span<std::byte> bytes, std::size_t replaces, Action after) {
  receives_.push_back({from, bytes, replaces, std::move(after)});
}

void Lockstep::run() {
  const std::size_t ahead = messages_ahead();
  Stopwatch watch(communicator_.pace_);
  for (std::size_t received = 0; received < receives_.size(); ++received) {
    // A request travels behind the messages to the same rank, which must not lie idle until it comes: so this is done
    // before those are sent, and earlier than needed.
    ask(received, 2 * ahead);
    start_sends(received, ahead);
    assert(asked_ > received);
    Receive& next = receives_[received];
    if (next.transfer) next.transfer->wait();
    next.transfer.reset();
    watch.add(next.bytes.size());
    if (next.after) next.after();
  }
  start_sends(receives_.size(), ahead);
  for (Send& send : sends_)
    if (send.transfer) send.transfer->wait();
}

// At least two, so that the next message travels while the last one is taken in.
std::size_t Lockstep::messages_ahead() const {
  std::size_t longest = 1;
  for (const Receive& receive : receives_) longest = std::max(longest, receive.bytes.size());
  return std::max<std::size_t>(2, communicator_.pace_.bytes_ahead() / longest);
}

void Lockstep::ask(std::size_t received, std::size_t ahead) {
  for (; asked_ < receives_.size() && asked_ < received + ahead; ++asked_) {
    Receive& receive = receives_[asked_];
    if (receive.replaces != kNone) {
      if (receive.replaces >= started_) return;
      if (const auto& transfer = sends_[receive.replaces].transfer) transfer->wait();
    }
    if (!receive.bytes.empty()) receive.transfer = communicator_.start_receive(receive.from, receive.bytes);
  }
}

// No rank waits for ever: a send waits for what comes earlier in the order alone, and so does whoever sends that.
void Lockstep::start_sends(std::size_t received, std::size_t ahead) {
  for (; started_ < sends_.size(); ++started_) {
    Send& send = sends_[started_];
    if (send.place >= received + ahead || send.needs > received) return;
    if (!send.bytes.empty()) send.transfer = communicator_.send(send.to, send.bytes);
  }
}

}  // namespace accordion
