// What loops that pick entries share: vectors of them, whole or cut short by the end of an array, and a place where picked ones
// wait. Compiled once per instruction set, as the kernels are.
#if defined(ACCORDION_KERNELS_SELECT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ACCORDION_KERNELS_SELECT_INL_H
#undef ACCORDION_KERNELS_SELECT_INL_H
#else
#define ACCORDION_KERNELS_SELECT_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "accordion/kernels/select.h"

#ifndef ACCORDION_KERNELS_SELECT_TABLE
#define ACCORDION_KERNELS_SELECT_TABLE
namespace accordion::kernels {

// For each byte, the places of its set bits, ascending, then zeros.
constexpr auto kSetBits = [] {
  std::array<std::array<std::uint8_t, 8>, 256> places = {};
  for (unsigned byte = 0; byte < 256; ++byte)
    for (unsigned bit = 0, set = 0; bit < 8; ++bit)
      if (byte >> bit & 1) places[byte][set++] = static_cast<std::uint8_t>(bit);
  return places;
}();

}  // namespace accordion::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Ints = hn::RebindToSigned<Floats>;
constexpr std::size_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);

// Picked entries wait here: a compressing store writes a whole vector, for which the caller may not have
// room.
class Staging {
 public:
  static constexpr std::size_t kBlock = 1024;

  explicit Staging(Room room) : room_(room) {}

  template <class Vector, class Mask>
  HWY_INLINE void pick(Vector a, Mask mask, std::size_t i) {
    const Floats d;
    const Ints di;
    const auto first = static_cast<std::int32_t>(i);
    if constexpr (HWY_MAX_BYTES <= 32) {
      // Highway's own compression reads a table which GCC 12 copies to the stack each time.
      std::uint8_t bits[8];
      hn::StoreMaskBits(di, mask, bits);
      const auto places =
          hn::PromoteTo(di, hn::LoadU(hn::Rebind<std::uint8_t, Ints>(), kSetBits[bits[0]].data()));
      hn::StoreU(hn::Add(places, hn::Set(di, first)), di, indices_ + waiting_);
      hn::StoreU(hn::TableLookupLanes(a, hn::IndicesFromVec(d, places)), d, values_ + waiting_);
      waiting_ += hn::CountTrue(di, mask);
    } else {
      hn::StoreU(hn::Compress(hn::Iota(di, first), mask), di, indices_ + waiting_);
      hn::StoreU(hn::Compress(a, hn::RebindMask(d, mask)), d, values_ + waiting_);
      waiting_ += hn::CountTrue(di, mask);
    }
  }

  void flush() {
    const std::size_t have = std::min(picked_, room_.indices.size());
    const std::size_t count = std::min(waiting_, room_.indices.size() - have);
    if (count > 0) {
      std::memcpy(room_.indices.data() + have, indices_, count * sizeof(std::uint32_t));
      std::memcpy(room_.values.data() + have, values_, count * sizeof(float));
    }
    picked_ += waiting_;
    waiting_ = 0;
  }

  // Hands what waits to take(values, count) instead.
  template <class Take>
  void drain(Take take) {
    take(values_, waiting_);
    waiting_ = 0;
  }

  std::size_t picked() const { return picked_; }

 private:
  Room room_;
  std::size_t picked_ = 0, waiting_ = 0;
  std::int32_t indices_[kBlock + kMaxLanes];
  float values_[kBlock + kMaxLanes];
};

// Loads and stores a whole vector, or `lanes` of one at the end of an array; the lanes beyond are zero.
template <class Whole>
HWY_INLINE hn::Vec<Floats> Load(Whole, const float* x, std::size_t lanes) {
  const Floats d;
  if constexpr (Whole::value) return hn::LoadU(d, x);
  HWY_ALIGN float padded[kMaxLanes] = {};
  std::memcpy(padded, x, lanes * sizeof(float));
  return hn::Load(d, padded);
}

template <class Whole, class Vector>
HWY_INLINE void Store(Whole, Vector v, float* x, std::size_t lanes) {
  const Floats d;
  if constexpr (Whole::value) return hn::StoreU(v, d, x);
  HWY_ALIGN float padded[kMaxLanes];
  hn::Store(v, d, padded);
  std::memcpy(x, padded, lanes * sizeof(float));
}

// Calls step(whole, i, lanes) for every vector, `whole` a constant; flush after each block.
template <class Step, class Flush>
HWY_INLINE void ForVectors(std::size_t n, Step step, Flush flush) {
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  while (i + lanes <= n) {
    const std::size_t end = std::min(n, i + Staging::kBlock);
    for (; i + lanes <= end; i += lanes) step(std::true_type(), i, lanes);
    flush();
  }
  if (i < n) step(std::false_type(), i, n - i);
  flush();
}

template <class Whole>
HWY_INLINE hn::Vec<Floats> LoadSum(Whole whole, const float* x, const float* y, std::size_t i,
                                   std::size_t lanes) {
  const auto a = Load(whole, x + i, lanes);
  return y == nullptr ? a : hn::Add(a, Load(whole, y + i, lanes));
}

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
