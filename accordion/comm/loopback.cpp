#include "accordion/comm/loopback.h"

#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "accordion/base/error.h"

namespace accordion {
namespace {

// Where the ranks meet. Messages are copied straight from the sender's memory between two barriers.
class Room {
 public:
  explicit Room(int ranks) : ranks_(ranks), sends_(static_cast<std::size_t>(ranks)) {}

  int ranks() const { return ranks_; }

  // Returns when all ranks have come; throws if one of them never will.
  void meet(int rank) {
    std::unique_lock lock(mutex_);
    const auto round = round_;
    if (left_ < 0 && ++arrived_ == ranks_) {
      arrived_ = 0;
      ++round_;
      all_here_.notify_all();
    } else {
      all_here_.wait(lock, [&] { return round_ != round || left_ >= 0; });
    }
    if (round_ == round)
      throw Error("rank " + std::to_string(rank) + ": all_to_all: rank " + std::to_string(left_) +
                  " has left the group");
  }

  void leave(int rank) {
    std::lock_guard lock(mutex_);
    if (left_ < 0) left_ = rank;
    all_here_.notify_all();
  }

  std::span<const std::span<const std::byte>>& sends(int rank) {
    return sends_[static_cast<std::size_t>(rank)];
  }

 private:
  const int ranks_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  int arrived_ = 0;
  unsigned long round_ = 0;
  int left_ = -1;  // The first rank that left.
  std::vector<std::span<const std::span<const std::byte>>> sends_;
};

class Loopback final : public Communicator {
 public:
  Loopback(std::shared_ptr<Room> room, int rank) : room_(std::move(room)), rank_(rank) {}
  ~Loopback() override { room_->leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return room_->ranks(); }

  void all_to_all(std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    room_->sends(rank_) = send;
    room_->meet(rank_);
    std::string mistake;
    for (int r = 0; r < size(); ++r) {
      const auto from = room_->sends(r)[static_cast<std::size_t>(rank_)];
      const auto to = receive[static_cast<std::size_t>(r)];
      if (from.size() != to.size())
        mistake = "rank " + std::to_string(rank_) + ": all_to_all: rank " + std::to_string(r) + " sent " +
                  std::to_string(from.size()) + " bytes, expected " + std::to_string(to.size());
      else if (!from.empty() && from.data() != to.data())
        std::memcpy(to.data(), from.data(), from.size());
    }
    room_->meet(rank_);  // Nobody touches its memory before all have read it.
    if (!mistake.empty()) throw Error(mistake);
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    std::vector<std::span<const std::byte>> send(static_cast<std::size_t>(size()));
    std::vector<std::span<std::byte>> receive(send.size());
    if (rank_ == root) send.assign(send.size(), bytes);
    receive[static_cast<std::size_t>(root)] = bytes;
    all_to_all(send, receive);
  }

 private:
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
