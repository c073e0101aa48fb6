// What the two threads are for: the next bucket is encoded while messages of the last one travel.
#include "accordion/engine/communication_thread.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "accordion/engine/engine_testing.h"

namespace accordion {
namespace {

// Its first message does not leave before the bucket behind it is being prepared. For that the exchange asks which rank it is, in a
// thread other than the one that sends.
class Waiting final : public Communicator {
 public:
  explicit Waiting(Communicator& inner) : inner_(inner), poster_(std::this_thread::get_id()) {}

  int rank() const override {
    const auto here = std::this_thread::get_id();
    std::lock_guard lock(mutex_);
    if (sender_ != std::thread::id() && here != sender_ && here != poster_) prepares_ = true;
    changed_.notify_all();
    return inner_.rank();
  }
  int size() const override { return inner_.size(); }

  std::unique_ptr<Transfer> start_send(int to, std::span<const std::byte> bytes) override {
    const auto here = std::this_thread::get_id();
    {
      std::unique_lock lock(mutex_);
      if (sender_ == std::thread::id() &&
          here != poster_) {  // The poster's own are those of making an exchange.
        sender_ = here;
        changed_.notify_all();
        in_time_ = changed_.wait_for(lock, std::chrono::seconds(10), [&] { return prepares_; });
      }
    }
    return inner_.start_send(to, bytes);
  }
  std::unique_ptr<Transfer> start_receive(int from, std::span<std::byte> bytes) override {
    return inner_.start_receive(from, bytes);
  }

  void await_first_send() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return sender_ != std::thread::id(); });
  }
  bool in_time() const {
    std::lock_guard lock(mutex_);
    return in_time_;
  }

 private:
  Communicator& inner_;
  const std::thread::id poster_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::thread::id sender_;
  mutable bool prepares_ = false;
  bool in_time_ = false;
};

TEST(CommunicationThread, TheNextBucketIsPreparedWhileTheLastOneTravels) {
  run_loopback(2, [](Communicator& inner) {
    Waiting waiting(inner);
    Exchange exchange(waiting, {kTensors[0], kTensors[1]}, {.levels = {parse_codec("topk:keep=0.05")}});
    CommunicationThread threads(exchange, {});
    std::vector<Floats> gradients = {gradient(0, inner.rank(), 0), gradient(1, inner.rank(), 0)};
    std::promise<void> done;
    const auto post = [&](std::size_t tensor, bool last) {
      threads.post({.values = std::span<float>(gradients[tensor]),
                    .slices = {{static_cast<int>(tensor), 0, gradients[tensor].size()}},
                    .last = last},
                   [&, last](const std::exception_ptr& failure) {
                     EXPECT_FALSE(failure);
                     if (last) done.set_value();
                   });
    };
    post(1, false);
    waiting.await_first_send();
    post(0, true);
    done.get_future().get();
    EXPECT_TRUE(waiting.in_time());
  });
}

}  // namespace
}  // namespace accordion
