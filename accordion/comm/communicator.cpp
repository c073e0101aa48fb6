#include "accordion/comm/communicator.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <exception>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/comm/inbox.h"
#include "accordion/comm/segments.h"

namespace accordion {
namespace {

auto segment(auto bytes, std::size_t i) {
  return Cut(bytes.size(), segments_of(bytes.size())).part(bytes, i);
}

}  // namespace

void Communicator::collective(const std::function<void()>& body) {
  if (!broken_.empty())
    throw Error("rank " + std::to_string(rank()) + " is out of step with the others since: " + broken_);
  ++calls_;
  try {
    body();
    finish_sends();
  } catch (const std::exception& error) {
    broken_ = error.what();
    sends_.clear();
    throw;
  }
}

void Communicator::finish_sends() {
  for (const auto& transfer : sends_)
    if (transfer) transfer->wait();
  sends_.clear();
}

void Communicator::abandon(const std::string& reason) {
  if (broken_.empty()) broken_ = reason;
  hang_up();
}

std::unique_ptr<Transfer> Communicator::send(int to, std::span<const std::byte> bytes) {
  if (bytes.empty()) return nullptr;
  sent_bytes_.fetch_add(bytes.size(), std::memory_order_relaxed);
  return start_send(to, bytes);
}

void Communicator::all_to_all(std::span<const std::span<const std::byte>> send,
                              std::span<const std::span<std::byte>> receive) {
  collective([&] { exchange(send, receive); });
}

// Peers take turns, segment by segment, and everyone begins with the next rank, so that no rank is everybody's
// first.
void Communicator::exchange(std::span<const std::span<const std::byte>> to_send,
                            std::span<const std::span<std::byte>> receive) {
  assert(to_send.size() == static_cast<std::size_t>(size()) && receive.size() == to_send.size());
  Inbox inbox(*this, pace_);
  // Peers by turns, segment by segment, the one that is `direction` further first.
  const auto in_turn = [&](auto messages, int direction, auto take) {
    bool more = true;
    for (std::size_t i = 0; std::exchange(more, false); ++i)
      for (int step = 1; step < size(); ++step) {
        const int peer = rank_further(direction * step);
        const auto message = messages[static_cast<std::size_t>(peer)];
        if (i < segments_of(message.size())) take(peer, segment(message, i));
        more = more || i + 1 < segments_of(message.size());
      }
  };
  in_turn(receive, -1, [&](int from, std::span<std::byte> part) { inbox.expect(from, part); });
  inbox.ask();
  in_turn(to_send, 1, [&](int to, std::span<const std::byte> part) { sends_.push_back(send(to, part)); });
  const auto own = to_send[static_cast<std::size_t>(rank())];
  const auto target = receive[static_cast<std::size_t>(rank())];
  assert(own.size() == target.size());
  if (!own.empty() && own.data() != target.data()) std::memcpy(target.data(), own.data(), own.size());
  inbox.receive_all();
  finish_sends();
}

void Communicator::gather(std::span<const std::byte> mine, std::span<const std::span<std::byte>> receive) {
  send_.assign(static_cast<std::size_t>(size()), mine);
  all_to_all(send_, receive);
}

void Communicator::gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  collective([&] { gather_equal(mine, all); });
}

void Communicator::gather_equal(std::span<const std::byte> mine, std::span<std::byte> all) {
  const auto ranks = static_cast<std::size_t>(size());
  assert(all.size() == mine.size() * ranks);
  send_.assign(ranks, mine);
  receive_.clear();
  for (std::size_t r = 0; r < ranks; ++r) receive_.push_back(all.subspan(r * mine.size(), mine.size()));
  exchange(send_, receive_);
}

// Down a tree in few hops when it is small; from rank to rank, segment by segment, when it is large, so that no
// link carries it twice.
void Communicator::broadcast(std::span<std::byte> bytes, int root) {
  assert(root >= 0 && root < size());
  if (bytes.empty() || size() == 1) return;
  collective([&] {
    const auto place = static_cast<unsigned>(rank_further(-root)), ranks = static_cast<unsigned>(size());
    const bool chain = segments_of(bytes.size()) > 1;
    // In the tree a place's parent lacks the place's lowest bit, and its children have one lower bit more.
    const unsigned lowest = place ? place & -place : std::bit_ceil(ranks);
    const unsigned parent = chain ? place - 1 : place - lowest;
    const auto rank_at = [&](unsigned p) {
      return static_cast<int>((p + static_cast<unsigned>(root)) % ranks);
    };
    const auto pass_on = [&](std::span<const std::byte> part) {
      if (chain) {
        if (place + 1 < ranks) sends_.push_back(send(rank_at(place + 1), part));
        return;
      }
      for (unsigned bit = lowest >> 1; bit > 0; bit >>= 1)
        if (place + bit < ranks) sends_.push_back(send(rank_at(place + bit), part));
    };
    Inbox inbox(*this, pace_);
    for (std::size_t i = 0; i < segments_of(bytes.size()); ++i) {
      const std::span<std::byte> part = segment(bytes, i);
      if (place == 0)
        pass_on(part);
      else
        inbox.expect(rank_at(parent), part, 0, {}, [&, part] { pass_on(part); });
    }
    inbox.receive_all();
  });
}

}  // namespace accordion
