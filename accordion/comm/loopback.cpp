#include "accordion/comm/loopback.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "accordion/base/error.h"

namespace accordion {
namespace {

// One end of a message. The bytes are copied straight from one to the other when both are there.
struct End {
  std::span<const std::byte> from = {};
  std::span<std::byte> to = {};
  bool done = false;
  std::size_t peers_bytes = 0;  // What the other end takes it for.
};

// Where the ranks meet. Between each two of them one of the two queues is empty.
class Room {
 public:
  explicit Room(int ranks)
      : ranks_(ranks), lanes_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)) {}

  int ranks() const { return ranks_; }

  void leave(int rank) {
    std::lock_guard lock(mutex_);
    left_.push_back(rank);
    changed_.notify_all();
  }

  void send(int from, int to, End& end) {
    std::lock_guard lock(mutex_);
    lane(from, to).sending.push_back(&end);
    match(lane(from, to));
  }

  void receive(int from, int to, End& end) {
    std::lock_guard lock(mutex_);
    lane(from, to).receiving.push_back(&end);
    match(lane(from, to));
  }

  // False when the peer left before.
  bool await(const End& end, int peer) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock,
                  [&] { return end.done || std::find(left_.begin(), left_.end(), peer) != left_.end(); });
    return end.done;
  }

  // So that nobody touches its bytes any more.
  void forget(int from, int to, End& end) {
    std::lock_guard lock(mutex_);
    std::erase(lane(from, to).sending, &end);
    std::erase(lane(from, to).receiving, &end);
  }

  int first_left() {
    std::lock_guard lock(mutex_);
    return left_.front();
  }

 private:
  struct Lane {
    std::deque<End*> sending, receiving;
  };

  Lane& lane(int from, int to) { return lanes_[static_cast<std::size_t>(from * ranks_ + to)]; }

  void match(Lane& lane) {
    if (lane.sending.empty() || lane.receiving.empty()) return;
    End &sending = *lane.sending.front(), &receiving = *lane.receiving.front();
    lane.sending.pop_front();
    lane.receiving.pop_front();
    receiving.peers_bytes = sending.from.size();
    if (sending.from.size() == receiving.to.size())
      std::memcpy(receiving.to.data(), sending.from.data(), sending.from.size());
    sending.done = receiving.done = true;
    changed_.notify_all();
  }

  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> left_;  // In the order in which they left.
  std::vector<Lane> lanes_;
};

class LoopbackTransfer final : public Transfer {
 public:
  LoopbackTransfer(std::shared_ptr<Room> room, int from, int to, std::span<const std::byte> bytes)
      : room_(std::move(room)), from_(from), to_(to), end_{.from = bytes} {
    room_->send(from, to, end_);
  }
  LoopbackTransfer(std::shared_ptr<Room> room, int from, int to, std::span<std::byte> bytes)
      : room_(std::move(room)), from_(from), to_(to), end_{.to = bytes} {
    room_->receive(from, to, end_);
  }
  ~LoopbackTransfer() override { room_->forget(from_, to_, end_); }

  void wait() override {
    const bool sends = !end_.from.empty();
    const std::size_t bytes = sends ? end_.from.size() : end_.to.size();
    std::string reason;
    if (!room_->await(end_, sends ? to_ : from_))
      reason = "rank " + std::to_string(room_->first_left()) + " has left the group";
    else if (!sends && end_.peers_bytes != bytes)
      reason = "it sent " + std::to_string(end_.peers_bytes);
    if (!reason.empty())
      throw Error("rank " + std::to_string(sends ? from_ : to_) + (sends ? ": sending " : ": receiving ") +
                  std::to_string(bytes) + " bytes " + (sends ? "to" : "from") + " rank " +
                  std::to_string(sends ? to_ : from_) + ": " + reason);
  }

 private:
  std::shared_ptr<Room> room_;
  const int from_, to_;
  End end_;
};

class Loopback final : public Communicator {
 public:
  Loopback(std::shared_ptr<Room> room, int rank) : room_(std::move(room)), rank_(rank) {}
  ~Loopback() override { room_->leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return room_->ranks(); }

  std::unique_ptr<Transfer> start_send(int to, std::span<const std::byte> bytes) override {
    return std::make_unique<LoopbackTransfer>(room_, rank_, to, bytes);
  }
  std::unique_ptr<Transfer> start_receive(int from, std::span<std::byte> bytes) override {
    return std::make_unique<LoopbackTransfer>(room_, from, rank_, bytes);
  }

 private:
  void hang_up() override { room_->leave(rank_); }

  std::shared_ptr<Room> room_;
  int rank_;
};

// One thread a member, each of which leaves as soon as its body has ended.
template <class Members>
void run_threads(Members members, const auto& body) {
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (auto& member : members)
    threads.emplace_back([&] {
      try {
        body(member);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      member.reset();
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_loopback(int ranks) {
  auto room = std::make_shared<Room>(ranks);
  std::vector<std::unique_ptr<Communicator>> group;
  for (int r = 0; r < ranks; ++r) group.push_back(std::make_unique<Loopback>(room, r));
  return group;
}

void run_loopback(int ranks, const std::function<void(Communicator&)>& body) {
  run_threads(make_loopback(ranks), [&](auto& communicator) { body(*communicator); });
}

void run_loopback_groups(int ranks, const std::function<void(Group&)>& body) {
  auto gradients = make_loopback(ranks), control = make_loopback(ranks);
  std::vector<std::optional<Group>> groups;
  for (std::size_t r = 0; r < gradients.size(); ++r)
    groups.emplace_back(Group(std::move(gradients[r]), std::move(control[r])));
  run_threads(std::move(groups), [&](auto& group) { body(*group); });
}

}  // namespace accordion
