// What a group of ranks can do together. Two primitives are virtual; everything else is built on them, once,
// so that every backend adds in the same order and a result's bits never depend on the backend or on a
// tensor's place in a buffer.
//
// Every call is collective: all ranks make the same calls in the same order, from one thread a communicator.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace accordion {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sends send[r] to rank r and fills receive[r] from rank r. Both sides know the size of every message; an
  // empty one is not sent. The own message is copied, unless send and receive name the same bytes; no others
  // may overlap.
  virtual void all_to_all(std::span<const std::span<const std::byte>> send,
                          std::span<const std::span<std::byte>> receive) = 0;

  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;

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

 private:
  template <class T, class Combine>
  void reduce(std::span<T> values, Combine combine);
  std::span<std::byte> scratch(std::size_t bytes);

  // Kept between calls, so that a step allocates nothing.
  std::vector<std::byte> scratch_;
  std::vector<const std::byte*> parts_;
  std::vector<std::span<const std::byte>> send_;
  std::vector<std::span<std::byte>> receive_;
};

}  // namespace accordion
