#include "accordion/comm/communicator.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "accordion/base/half.h"
#include "accordion/kernels/halves.h"

namespace accordion {
namespace {

// While a rank sends no more than this in all, one round in which everyone sends everything beats two rounds
// that together move less. On a fast network it could be more; at 1 Gbit/s the extra bytes cost what the
// round saves.
constexpr std::size_t kOneRoundBytes = 32768;

// Elements combined at a time: the partial result stays in the first-level cache while the ranks' parts
// stream by.
constexpr std::size_t kBlock = 2048;

// target[i] = parts[0][i] + parts[1][i] + ..., in that order. `target` may be one of the parts.
template <class T, class Combine>
void combine_in_order(std::span<const std::byte* const> parts, std::span<T> target, Combine combine) {
  T block[kBlock];
  for (std::size_t begin = 0; begin < target.size(); begin += kBlock) {
    const std::size_t length = std::min(kBlock, target.size() - begin);
    std::memcpy(block, parts[0] + begin * sizeof(T), length * sizeof(T));
    for (const std::byte* bytes : parts.subspan(1)) {
      const T* part = reinterpret_cast<const T*>(bytes) + begin;
      for (std::size_t i = 0; i < length; ++i) block[i] = combine(block[i], part[i]);
    }
    std::memcpy(target.data() + begin, block, length * sizeof(T));
  }
}

// 16-bit numbers as the kernels see them.
std::vector<const std::uint16_t*> words(std::span<const std::byte* const> parts) {
  std::vector<const std::uint16_t*> result;
  for (const std::byte* part : parts) result.push_back(reinterpret_cast<const std::uint16_t*>(part));
  return result;
}

template <class T>
std::span<std::uint16_t> words(std::span<T> values) {
  return {reinterpret_cast<std::uint16_t*>(values.data()), values.size()};
}

}  // namespace

void Communicator::gather(std::span<const std::byte> mine, std::span<const std::span<std::byte>> receive) {
  send_.assign(static_cast<std::size_t>(size()), mine);
  all_to_all(send_, receive);
}

void Communicator::gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const auto ranks = static_cast<std::size_t>(size());
  assert(all.size() == mine.size() * ranks);
  receive_.clear();
  for (std::size_t r = 0; r < ranks; ++r) receive_.push_back(all.subspan(r * mine.size(), mine.size()));
  gather(mine, receive_);
}

// Never shrinks: growing again would clear bytes that are about to be overwritten.
std::span<std::byte> Communicator::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return std::span(scratch_).first(bytes);
}

// A sum whose order of additions is fixed by rank alone: split into one chunk a rank, send every chunk to its
// owner, who combines them in rank order, and gather the results. It moves what a ring all-reduce moves,
// 2S(N-1)/N.
template <class T, class Combine>
void Communicator::reduce(std::span<T> values, Combine combine_parts) {
  const auto ranks = static_cast<std::size_t>(size());
  const auto self = static_cast<std::size_t>(rank());
  const std::size_t count = values.size();
  if (ranks == 1 || count == 0) return;

  parts_.resize(ranks);
  if (values.size_bytes() * (ranks - 1) <= kOneRoundBytes) {
    const auto all = scratch(ranks * values.size_bytes());
    gather(std::as_bytes(values), all);
    for (std::size_t r = 0; r < ranks; ++r) parts_[r] = all.data() + r * values.size_bytes();
    combine_parts(parts_, values);
    return;
  }

  const std::size_t chunk = (count + ranks - 1) / ranks;
  auto chunk_of = [&](std::size_t r) {
    const std::size_t begin = std::min(r * chunk, count);
    return values.subspan(begin, std::min(chunk, count - begin));
  };
  const std::span<T> mine = chunk_of(self);
  const auto others = scratch(ranks * mine.size_bytes());
  send_.clear();
  receive_.clear();
  for (std::size_t r = 0; r < ranks; ++r) {
    send_.push_back(std::as_bytes(chunk_of(r)));
    // The own chunk is read where it lies.
    receive_.push_back(r == self ? std::as_writable_bytes(mine)
                                 : others.subspan(r * mine.size_bytes(), mine.size_bytes()));
    parts_[r] = receive_.back().data();
  }
  all_to_all(send_, receive_);
  combine_parts(parts_, mine);

  receive_.clear();
  for (std::size_t r = 0; r < ranks; ++r) receive_.push_back(std::as_writable_bytes(chunk_of(r)));
  gather(std::as_bytes(mine), receive_);
}

template <class T>
void Communicator::sum(std::span<T> values) {
  reduce(values, [](std::span<const std::byte* const> parts, std::span<T> target) {
    combine_in_order(parts, target, [](T a, T b) {
      if constexpr (std::is_integral_v<T>) {
        using Wrapping = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
      } else {
        return a + b;
      }
    });
  });
}

template <class T>
void Communicator::max(std::span<T> values) {
  // Only what is not a number differs from itself; as `a` it stays, because no comparison with it holds.
  reduce(values, [](std::span<const std::byte* const> parts, std::span<T> target) {
    combine_in_order(parts, target, [](T a, T b) { return b > a || b != b ? b : a; });
  });
}

// 16-bit numbers are added in single precision, and rounded once.
template <>
void Communicator::sum(std::span<Half> values) {
  reduce(values, [](std::span<const std::byte* const> parts, std::span<Half> target) {
    kernels::sum_halves(words(parts), words(target));
  });
}

template <>
void Communicator::sum(std::span<Bfloat16> values) {
  reduce(values, [](std::span<const std::byte* const> parts, std::span<Bfloat16> target) {
    kernels::sum_bfloat16s(words(parts), words(target));
  });
}

#define ACCORDION_REDUCIBLE(T)                   \
  template void Communicator::sum(std::span<T>); \
  template void Communicator::max(std::span<T>);
ACCORDION_REDUCIBLE(float)
ACCORDION_REDUCIBLE(double)
ACCORDION_REDUCIBLE(std::int8_t)
ACCORDION_REDUCIBLE(std::int16_t)
ACCORDION_REDUCIBLE(std::int32_t)
ACCORDION_REDUCIBLE(std::int64_t)
ACCORDION_REDUCIBLE(std::uint64_t)
#undef ACCORDION_REDUCIBLE

}  // namespace accordion
