// Receives messages in a fixed order, and asks for no more of them ahead than keep the link busy: what has been
// asked for comes from several ranks at once, and more than the network's queues hold would be lost on the way.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/comm/pace.h"

namespace accordion {

class Inbox {
 public:
  using Action = std::function<void()>;

  Inbox(Communicator& communicator, Pace& pace) : communicator_(communicator), pace_(pace) {}

  // To be received after all that were expected before, and asked for when `prior` of those are there. `before` is
  // called when its bytes are about to be in use, `after` when it has come. An empty message is not sent, and
  // neither is called.
  void expect(int from, std::span<std::byte> bytes, std::size_t prior = 0, Action before = {},
              Action after = {}) {
    if (!bytes.empty()) messages_.push_back({from, bytes, prior, std::move(before), std::move(after)});
  }

  std::size_t expected() const { return messages_.size(); }

  // Asks for the first of them. To be called before anything is sent: requests travel the same way as messages
  // do, and would wait behind them while the other rank's link lies idle.
  void ask() { ask(0); }

  void receive_all() {
    Stopwatch watch(pace_);
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      ask(i);
      under_way_.front()->wait();
      under_way_.pop_front();
      bytes_ -= messages_[i].bytes.size();
      watch.add(messages_[i].bytes.size());
      if (messages_[i].after) messages_[i].after();
    }
  }

 private:
  struct Message {
    int from;
    std::span<std::byte> bytes;
    std::size_t prior;
    Action before, after;
  };

  // When `here` of them have come.
  void ask(std::size_t here) {
    while (started_ < messages_.size() && messages_[started_].prior <= here &&
           (under_way_.empty() || bytes_ + messages_[started_].bytes.size() <= window_))
      start();
  }

  void start() {
    const Message& message = messages_[started_++];
    if (message.before) message.before();
    under_way_.push_back(communicator_.start_receive(message.from, message.bytes));
    bytes_ += message.bytes.size();
  }

  Communicator& communicator_;
  Pace& pace_;
  const std::size_t window_ = pace_.window_bytes();
  std::vector<Message> messages_;
  std::deque<std::unique_ptr<Transfer>> under_way_;
  std::size_t started_ = 0, bytes_ = 0;
};

}  // namespace accordion
