#include "accordion/comm/communicator.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <exception>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/comm/lockstep.h"
#include "accordion/comm/segments.h"

namespace accordion {

void Communicator::collective(const std::function<void()>& body) {
  if (!broken_.empty())
    throw Error("rank " + std::to_string(rank()) + " is out of step with the others since: " + broken_);
  ++calls_;
  try {
    body();
  } catch (const std::exception& error) {
    broken_ = error.what();
    throw;
  }
}

void Communicator::abandon(const std::string& reason) {
  if (broken_.empty()) broken_ = reason;
  hang_up();
}

std::unique_ptr<Transfer> Communicator::send(int to, std::span<const std::byte> bytes) {
  sent_bytes_.fetch_add(bytes.size(), std::memory_order_relaxed);
  return start_send(to, bytes);
}

void Communicator::all_to_all(std::span<const std::span<const std::byte>> send,
                              std::span<const std::span<std::byte>> receive) {
  collective([&] { exchange(send, receive); });
}

// First to the next rank and from the one before, then two ranks further, and so on.
void Communicator::exchange(std::span<const std::span<const std::byte>> to_send,
                            std::span<const std::span<std::byte>> receive) {
  assert(to_send.size() == static_cast<std::size_t>(size()) && receive.size() == to_send.size());
  Lockstep order(*this);
  const auto cut = [&](std::size_t bytes) { return Cut(bytes, segments_of(bytes, agreed_pace_)); };
  for (int step = 1; step < size(); ++step) {
    const int to = rank_further(step), from = rank_further(-step);
    const auto out = to_send[static_cast<std::size_t>(to)];
    const auto in = receive[static_cast<std::size_t>(from)];
    const Cut outs = cut(out.size()), ins = cut(in.size());
    for (std::size_t i = 0; i < std::max(outs.pieces(), ins.pieces()); ++i) {
      if (i < outs.pieces()) order.send(to, outs.part(out, i));
      if (i < ins.pieces()) order.receive(from, ins.part(in, i));
    }
  }
  const auto own = to_send[static_cast<std::size_t>(rank())];
  const auto target = receive[static_cast<std::size_t>(rank())];
  assert(own.size() == target.size());
  if (!own.empty() && own.data() != target.data()) std::memcpy(target.data(), own.data(), own.size());
  order.run();
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
    const Cut segments(bytes.size(), chain_segments_of(bytes.size()));
    const bool chain = segments.pieces() > 1;
    // In the tree a place's parent lacks the place's lowest bit, and its children have one lower bit more.
    const unsigned lowest = place ? place & -place : std::bit_ceil(ranks);
    const unsigned parent = chain ? place - 1 : place - lowest;
    const auto rank_at = [&](unsigned p) {
      return static_cast<int>((p + static_cast<unsigned>(root)) % ranks);
    };
    Lockstep order(*this);
    for (std::size_t i = 0; i < segments.pieces(); ++i) {
      const std::span<std::byte> part = segments.part(bytes, i);
      if (place > 0) order.receive(rank_at(parent), part);
      if (chain) {
        if (place + 1 < ranks) order.send(rank_at(place + 1), part, order.receives());
        continue;
      }
      for (unsigned bit = lowest >> 1; bit > 0; bit >>= 1)
        if (place + bit < ranks) order.send(rank_at(place + bit), part, order.receives());
    }
    order.run();
  });
}

}  // namespace accordion
