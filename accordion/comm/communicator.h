// What a group of ranks can do together. A back end moves one message from one rank to another; everything else
// is built on that, once, so that every back end adds in the same order and a result's bits never depend on the
// back end or on a tensor's place in a buffer.
//
// Every call is collective: all ranks make the same calls in the same order, from one thread a communicator.
//
// Large messages travel in segments, to one peer after the other, and all ranks keep the same pace (lockstep.h). How many
// segments depends on how fast the links are, and both ends must have the same number: with every long sum (segments.h) ranks tell each
// other how fast messages have been arriving.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "accordion/comm/pace.h"

namespace accordion {

// A message on its way. Its bytes are in use until wait() has returned or this is gone.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual void wait() = 0;  // Throws an Error that names this rank, the operation and the peer.
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sends send[r] to rank r and fills receive[r] from rank r. Both sides know the size of every message; an
  // empty one is not sent. The own message is copied, unless send and receive name the same bytes; no others
  // may overlap.
  void all_to_all(std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive);

  void broadcast(std::span<std::byte> bytes, int root);

  // Fills receive[r] with rank r's `mine`; lengths may differ between ranks and are known to all. `mine` may
  // be receive[rank()].
  void gather(std::span<const std::byte> mine, std::span<const std::span<std::byte>> receive);

  // The same with one length on all ranks, into consecutive places of `all`.
  void gather(std::span<const std::byte> mine, std::span<std::byte> all);

  // Replaces each value by the sum (the largest) over ranks, taken in rank order 0, 1, ... on every rank.
  // Integers wrap around. The largest of values among which one is not a number is not a number either, so
  // that an overflow anywhere reaches everyone. T: float, double, std::int8_t, std::int16_t, std::int32_t,
  // std::int64_t, std::uint64_t; sums also Half and Bfloat16 (base/half.h).
  template <class T>
  void sum(std::span<T> values);
  template <class T>
  void max(std::span<T> values);

  // What this rank has handed to the network for other ranks so far. May be asked by any thread.
  std::uint64_t sent_bytes() const { return sent_bytes_.load(std::memory_order_relaxed); }

  // For a rank that cannot make a call which the others make: they stop waiting for it, where the back end can
  // tell them, and every later call of this rank throws an Error with this reason. So does every call after one
  // that failed, because nobody knows how far the others came.
  void abandon(const std::string& reason);

  // What a back end implements: starts a transfer and returns. Messages from one rank to another arrive in the
  // order in which they were sent; both sides give the same size, which is not 0. Once both have started it, it
  // moves without either waiting for it, and a large one no sooner. Called by Lockstep alone.
  virtual std::unique_ptr<Transfer> start_send(int to, std::span<const std::byte> bytes) = 0;
  virtual std::unique_ptr<Transfer> start_receive(int from, std::span<std::byte> bytes) = 0;

 protected:
  // The number of the collective call that is being made, which is the same on all ranks.
  std::uint64_t call() const { return calls_; }

  // Lets go of the other ranks.
  virtual void hang_up() {}

 private:
  friend class Lockstep;
  void collective(const std::function<void()>& body);
  std::unique_ptr<Transfer> send(int to, std::span<const std::byte> bytes);
  int rank_further(int steps) const { return (rank() + steps + size()) % size(); }
  void exchange(std::span<const std::span<const std::byte>> send,
                std::span<const std::span<std::byte>> receive);
  void gather_equal(std::span<const std::byte> mine, std::span<std::byte> all);
  template <class T, class Combine>
  void reduce(std::span<T> values, Combine combine);
  template <class T, class Combine>
  void reduce_in_one_round(std::span<T> values, Combine combine);
  template <class T, class Combine>
  void reduce_in_segments(std::span<T> values, Combine combine);
  std::span<std::byte> scratch(std::size_t bytes);

  std::atomic<std::uint64_t> sent_bytes_ = 0;
  std::uint64_t calls_ = 0;
  std::string broken_;  // Why no call can be made any more.

  Pace pace_;
  double agreed_pace_ = kUnknownPace;  // The same on all ranks.

  // Kept between calls for their memory.
  std::vector<std::byte> scratch_;
  std::vector<const std::byte*> parts_;
  std::vector<double> paces_;
  std::vector<std::span<const std::byte>> send_;
  std::vector<std::span<std::byte>> receive_;
};

}  // namespace accordion
