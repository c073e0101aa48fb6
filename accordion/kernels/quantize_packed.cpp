#include "accordion/kernels/quantize_packed.h"

#include <algorithm>

#include "accordion/kernels/quantize.h"

// Highway compiles the part between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once per instruction set and
// picks the best one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "accordion/kernels/quantize_packed.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "accordion/kernels/draws_inl.h"

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

// No vectors, or vectors of a length the compiler does not know: the plain loop.
void QuantizePacked(RandomKey key, std::uint64_t chunk, std::span<const float> x,
                    std::span<const float> scales, int bits, std::byte* packed) {
  reference::quantize_packed(key, chunk, x, scales, bits, packed);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// One or two blocks of 128 bits: the shuffles below are written for these.
using Wide = hn::CappedTag<std::uint64_t, 4>;
using Words = hn::Repartition<std::uint32_t, Wide>;
using Halves = hn::Repartition<std::uint16_t, Wide>;
using Octets = hn::Repartition<std::uint8_t, Wide>;
using Floats = hn::RebindToFloat<Words>;
using Word = hn::Vec<Words>;
constexpr std::size_t kLanes = hn::MaxLanes(Words());
constexpr bool kTwoBlocks = kLanes == 8;

// Four vectors of words, which hold as many consecutive entries; a level is in bits 16 up.
struct Group {
  Word part[4];
  static constexpr std::size_t kEntries = 4 * kLanes;
};

// Bits `kMask` of the four parts' levels, in the four bytes of each word.
template <std::uint32_t kMask>
HWY_INLINE Word Gather(const Group& group) {
  const Halves d;
  const auto pair = [&](int low, int high) HWY_ATTR {
    const auto odd = hn::BitCast(d, group.part[high]),
               even = hn::BitCast(d, hn::ShiftRight<16>(group.part[low]));
    return hn::And(hn::OddEven(odd, even), hn::Set(d, kMask));
  };
  return hn::BitCast(Words(), hn::Or(pair(0, 2), hn::ShiftLeft<8>(pair(1, 3))));
}

HWY_INLINE hn::Vec<Octets> ShuffleBytes(Word words, const std::uint8_t* from) {
  return hn::TableLookupBytes(hn::BitCast(Octets(), words), hn::LoadDup128(Octets(), from));
}

// The four bytes of four words, transposed.
HWY_ALIGN constexpr std::uint8_t kTransposed[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};

// A group of eight-bit levels is a vector.
HWY_INLINE void Store8(const Group& group, std::uint8_t* packed) {
  auto words = hn::BitCast(Words(), ShuffleBytes(Gather<0xff>(group), kTransposed));
  if constexpr (kTwoBlocks) {
    HWY_ALIGN static constexpr std::uint32_t kFrom[] = {0, 4, 1, 5, 2, 6, 3, 7};
    words = hn::TableLookupLanes(words, hn::SetTableIndices(Words(), kFrom));
  }
  hn::StoreU(hn::BitCast(Octets(), words), Octets(), packed);
}

// The even words of two vectors, in turn.
HWY_INLINE Word Zip(Word first, Word second) {
  return hn::OddEven(hn::BitCast(Words(), hn::ShiftLeft<32>(hn::BitCast(Wide(), second))), first);
}

// Joins fields of `kBits` bits in neighbouring words, in the lower one.
template <int kBits>
HWY_INLINE Word JoinNeighbours(Word words) {
  return hn::Or(words, hn::BitCast(Words(), hn::ShiftRight<32 - kBits>(hn::BitCast(Wide(), words))));
}

// Two groups of four-bit levels are a vector.
HWY_INLINE void Store4(const Group& first, const Group& second, std::uint8_t* packed) {
  auto words = Zip(JoinNeighbours<4>(Gather<0xf>(first)), JoinNeighbours<4>(Gather<0xf>(second)));
  if constexpr (kTwoBlocks) {
    HWY_ALIGN static constexpr std::uint32_t kFrom[] = {0, 2, 4, 6, 1, 3, 5, 7};
    words = hn::TableLookupLanes(words, hn::SetTableIndices(Words(), kFrom));
    hn::StoreU(ShuffleBytes(words, kTransposed), Octets(), packed);
  } else {
    HWY_ALIGN static constexpr std::uint8_t kFrom[16] = {0, 8,  1, 9,  2, 10, 3, 11,
                                                         4, 12, 5, 13, 6, 14, 7, 15};
    hn::StoreU(ShuffleBytes(words, kFrom), Octets(), packed);
  }
}

// Two groups of two-bit levels are half a vector.
HWY_INLINE void Store2(const Group& first, const Group& second, std::uint8_t* packed) {
  const auto words = Zip(JoinNeighbours<2>(Gather<0x3>(first)), JoinNeighbours<2>(Gather<0x3>(second)));
  const auto upper = hn::ShiftLeft<4>(hn::ShiftRightLanes<2>(Words(), words));
  const auto bytes = hn::BitCast(Octets(), hn::Or(words, upper));  // The lower half of each block.
  const hn::Half<Octets> half;
  if constexpr (kTwoBlocks) {
    hn::StoreU(hn::InterleaveLower(half, hn::LowerHalf(half, bytes), hn::UpperHalf(half, bytes)), half,
               packed);
  } else {
    hn::StoreU(hn::LowerHalf(half, bytes), half, packed);
  }
}

// Entries are read this far ahead: while memory is slow, there is arithmetic to do.
constexpr std::size_t kAhead = 8 * kChunk;

// As quantize does it, but for clipping: no product leaves the range once it is rounded.
template <int kBits, bool kLift>
void Chunk(Generators<Wide> generators, const float* x, float factor, std::uint8_t* packed) {
  constexpr int kSteps = (1 << (kBits - 1)) - 1, kDistance = distance_bits(kSteps);
  const Floats d;
  const auto by = hn::Set(d, factor), magic = hn::Set(d, 0x1.8p23f);
  const auto level = [&](const float* at, Word random) HWY_ATTR {
    auto value = hn::LoadU(d, at);
    if constexpr (kLift) value = hn::Mul(value, hn::Set(d, kLiftBy));
    const auto fixed = hn::BitCast(Words(), hn::Add(hn::Mul(value, by), magic));
    return hn::ShiftLeft<16 - kDistance>(hn::Add(fixed, random));
  };
  const auto next_group = [&](std::size_t v) HWY_ATTR {
    Group group;
    for (std::size_t i = 0; i < 2; ++i, x += 2 * kLanes) {
      const auto draws = hn::ShiftRight<16 - kDistance>(hn::BitCast(Halves(), generators.Next(v + i)));
      const auto zero = hn::Zero(Halves());
      group.part[2 * i] = level(x, hn::BitCast(Words(), hn::InterleaveLower(Halves(), draws, zero)));
      group.part[2 * i + 1] =
          level(x + kLanes, hn::BitCast(Words(), hn::InterleaveUpper(Halves(), draws, zero)));
    }
    hwy::Prefetch(x + kAhead);
    if constexpr (kTwoBlocks) hwy::Prefetch(x + kAhead + 16);
    return group;
  };
  constexpr std::size_t kVectors = Generators<Wide>::kVectors;
  for (std::size_t i = 0; i < kChunk; i += 2 * Group::kEntries, packed += 2 * Group::kEntries * kBits / 8) {
    const Group first = next_group(0), second = next_group(2 % kVectors);
    if constexpr (kBits == 8) {
      Store8(first, packed);
      Store8(second, packed + Group::kEntries);
    } else {
      (kBits == 4 ? Store4 : Store2)(first, second, packed);
    }
  }
}

template <int kBits>
void Chunks(RandomKey key, std::uint64_t chunk, const float* x, std::span<const float> scales,
            std::uint8_t* packed) {
  constexpr int kSteps = (1 << (kBits - 1)) - 1;
  constexpr double kMost = kSteps << distance_bits(kSteps);
  // Blocks of 128 bits are widened on their own: with this order of generators, the lower halves of both
  // belong to consecutive entries, and so do the upper halves.
  HWY_ALIGN constexpr std::uint64_t kOrder[] = {0, kTwoBlocks ? 2 : 1, 1, 3};
  const auto order = hn::Load(Wide(), kOrder);
  const Generators<Wide>::Keys keys(key);
  for (const float scale : scales) {
    if (scale >= kLiftBelow) {
      const Generators<Wide> generators(keys, chunk, order);
      Chunk<kBits, false>(generators, x, static_cast<float>(kMost / scale), packed);
    } else if (scale > 0) {
      const Generators<Wide> generators(keys, chunk, order);
      Chunk<kBits, true>(generators, x, static_cast<float>(kMost / (scale * kLiftBy)), packed);
    } else {
      std::fill_n(packed, kChunk * kBits / 8, std::uint8_t{0});
    }
    ++chunk;
    x += kChunk;
    packed += kChunk * kBits / 8;
  }
}

void QuantizePacked(RandomKey key, std::uint64_t chunk, std::span<const float> x,
                    std::span<const float> scales, int bits, std::byte* packed) {
  const auto chunks = bits == 2 ? Chunks<2> : bits == 4 ? Chunks<4> : Chunks<8>;
  chunks(key, chunk, x.data(), scales, reinterpret_cast<std::uint8_t*>(packed));
}

#endif

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace accordion::kernels {

HWY_EXPORT(QuantizePacked);

void quantize_packed(RandomKey key, std::uint64_t chunk, std::span<const float> x,
                     std::span<const float> scales, int bits, std::byte* packed) noexcept {
  HWY_DYNAMIC_DISPATCH(QuantizePacked)(key, chunk, x, scales, bits, packed);
}

}  // namespace accordion::kernels
#endif
