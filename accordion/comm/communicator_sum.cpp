// Sums and maxima whose order of additions is fixed by rank alone.
#include "accordion/comm/communicator.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "accordion/base/half.h"
#include "accordion/comm/lockstep.h"
#include "accordion/comm/segments.h"
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

// Never shrinks: growing again would clear bytes that are about to be overwritten.
std::span<std::byte> Communicator::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return std::span(scratch_).first(bytes);
}

template <class T, class Combine>
void Communicator::reduce(std::span<T> values, Combine combine) {
  if (size() == 1 || values.empty()) return;
  parts_.resize(static_cast<std::size_t>(size()));
  collective([&] {
    if (values.size_bytes() * static_cast<std::size_t>(size() - 1) <= kOneRoundBytes)
      reduce_in_one_round(values, combine);
    else
      reduce_in_segments(values, combine);
  });
}

template <class T, class Combine>
void Communicator::reduce_in_one_round(std::span<T> values, Combine combine) {
  const auto all = scratch(parts_.size() * values.size_bytes());
  gather_equal(std::as_bytes(values), all);
  for (std::size_t r = 0; r < parts_.size(); ++r) parts_[r] = all.data() + r * values.size_bytes();
  combine(parts_, values);
}

// Every rank owns a block of the values. All send it their addends, it combines them in rank order and sends the sum to
// all, segment by segment: the first sums leave while the last addends arrive. That moves what a ring all-reduce
// moves, 2S(N-1)/N.
template <class T, class Combine>
void Communicator::reduce_in_segments(std::span<T> values, Combine combine) {
  const auto ranks = static_cast<std::size_t>(size()), self = static_cast<std::size_t>(rank());
  const std::size_t block_bytes = values.size_bytes() / ranks,
                    segments = segments_of(block_bytes, agreed_pace_);
  const Cut cut(values.size(), segments * ranks);
  const auto block = [&](std::size_t owner, std::size_t s) { return cut.part(values, s * ranks + owner); };
  const std::size_t slot_bytes = cut.longest() * sizeof(T);
  const auto slots = scratch(segments * ranks * slot_bytes);
  const auto slot = [&](std::size_t peer, std::size_t s) {
    return slots.subspan((s * ranks + peer) * slot_bytes, block(self, s).size_bytes());
  };

  const auto add_up = [&](std::size_t s) {
    for (std::size_t r = 0; r < ranks; ++r)
      parts_[r] = r == self ? std::as_bytes(block(self, s)).data() : slot(r, s).data();
    combine(parts_, block(self, s));
  };

  // What the next long message is cut by.
  const bool tells = is_long(block_bytes);
  paces_.assign(ranks, pace_.bytes_per_second());
  const auto pace_of = [&](std::size_t r) { return std::as_writable_bytes(std::span(paces_).subspan(r, 1)); };

  Lockstep order(*this);
  std::vector<std::size_t> addends(segments * ranks);  // Numbers of their sends.
  std::vector<std::size_t> complete(segments);  // How many receives it takes until this rank's sum is there.
  const Cut rounds(segments, rounds_of(segments, block_bytes, ranks));
  const auto collect = [&](std::size_t round) {
    for (int step = 1; step < size(); ++step) {
      const auto owner = static_cast<std::size_t>(rank_further(step));
      const int peer = rank_further(-step);
      if (tells && round == 0) {
        order.send(static_cast<int>(owner), pace_of(self));
        order.receive(peer, pace_of(static_cast<std::size_t>(peer)));
      }
      for (std::size_t s = rounds.begin(round); s < rounds.begin(round + 1); ++s) {
        addends[s * ranks + owner] = order.send(static_cast<int>(owner), std::as_bytes(block(owner, s)));
        order.receive(
            peer, slot(static_cast<std::size_t>(peer), s), Lockstep::kNone,
            step < size() - 1 ? Lockstep::Action() : [&, s] { add_up(s); });
        complete[s] = order.receives();
      }
    }
  };
  const auto spread = [&](std::size_t round) {
    for (int step = 1; step < size(); ++step)
      for (std::size_t s = rounds.begin(round); s < rounds.begin(round + 1); ++s) {
        const auto owner = static_cast<std::size_t>(rank_further(-step));
        order.send(rank_further(step), std::as_bytes(block(self, s)), complete[s]);
        order.receive(static_cast<int>(owner), std::as_writable_bytes(block(owner, s)),
                      addends[s * ranks + owner]);
      }
  };
  // Sums leave two rounds after their addends: when their place comes they have long been added up.
  for (std::size_t round = 0; round < rounds.pieces() + 2; ++round) {
    if (round < rounds.pieces()) collect(round);
    if (round >= 2) spread(round - 2);
  }
  order.run();
  // The largest: what others saw has waiting in it.
  if (tells) agreed_pace_ = *std::max_element(paces_.begin(), paces_.end());
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
