#include "accordion/kernels/levels.h"

#include <algorithm>
#include <cstring>

// Highway compiles the part between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once per instruction set and
// picks the best one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "accordion/kernels/levels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

// No vectors, or vectors of a length the compiler does not know: the plain loops.
void Pack(const Levels& levels, int bits, std::byte* packed) {
  reference::pack(levels, bits, {packed, kChunk * bits / 8});
}
void Unpack(const std::byte* packed, int bits, Levels& levels) {
  reference::unpack({packed, kChunk * bits / 8}, bits, levels);
}
void SumLevels(std::span<const Scaled> ranks, std::span<float> sum) {
  reference::sum_levels(ranks, sum);
}
void AddLevels(Scaled rank, std::span<float> x) {
  reference::add_levels(rank, x);
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::CappedTag<float, 16>;

void Pack4(const std::int8_t* levels, std::uint8_t* packed) {
  const hn::CappedTag<std::uint16_t, 32> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::uint8_t, decltype(d)> d8;
  const auto low = hn::Set(d, 0x0f), high = hn::Set(d, 0xf0);
  for (std::size_t i = 0; i < kChunk / 2; i += hn::Lanes(d)) {
    const auto pair = hn::BitCast(d, hn::LoadU(hn::RepartitionToNarrow<decltype(di)>(), levels + 2 * i));
    const auto byte = hn::Or(hn::And(pair, low), hn::And(hn::ShiftRight<4>(pair), high));
    hn::StoreU(hn::DemoteTo(d8, hn::BitCast(di, byte)), d8, packed + i);
  }
}

void Pack2(const std::int8_t* levels, std::uint8_t* packed) {
  const hn::CappedTag<std::uint32_t, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::uint8_t, decltype(d)> d8;
  const auto three = hn::Set(d, 0x03030303);
  for (std::size_t i = 0; i < kChunk / 4; i += hn::Lanes(d)) {
    const auto four = hn::And(
        hn::BitCast(d, hn::LoadU(hn::Repartition<std::int8_t, decltype(d)>(), levels + 4 * i)), three);
    const auto two = hn::Or(four, hn::ShiftRight<6>(four));
    const auto byte = hn::And(hn::Or(two, hn::ShiftRight<12>(two)), hn::Set(d, 0xff));
    hn::StoreU(hn::DemoteTo(d8, hn::BitCast(di, byte)), d8, packed + i);
  }
}

void Unpack4(const std::uint8_t* packed, std::int8_t* levels) {
  const hn::CappedTag<std::uint16_t, 32> d;
  const hn::Repartition<std::int8_t, decltype(d)> d8;
  const auto sign = hn::Set(d8, 8);
  for (std::size_t i = 0; i < kChunk / 2; i += hn::Lanes(d)) {
    const auto byte = hn::PromoteTo(d, hn::LoadU(hn::Rebind<std::uint8_t, decltype(d)>(), packed + i));
    const auto pair = hn::And(hn::Or(byte, hn::ShiftLeft<4>(byte)), hn::Set(d, 0x0f0f));
    hn::StoreU(hn::Sub(hn::Xor(hn::BitCast(d8, pair), sign), sign), d8, levels + 2 * i);
  }
}

void Unpack2(const std::uint8_t* packed, std::int8_t* levels) {
  const hn::CappedTag<std::uint32_t, 16> d;
  const hn::Repartition<std::int8_t, decltype(d)> d8;
  const auto sign = hn::Set(d8, 2);
  for (std::size_t i = 0; i < kChunk / 4; i += hn::Lanes(d)) {
    const auto byte = hn::PromoteTo(d, hn::LoadU(hn::Rebind<std::uint8_t, decltype(d)>(), packed + i));
    const auto two = hn::Or(byte, hn::ShiftLeft<12>(byte));
    const auto four = hn::And(hn::Or(two, hn::ShiftLeft<6>(two)), hn::Set(d, 0x03030303));
    hn::StoreU(hn::Sub(hn::Xor(hn::BitCast(d8, four), sign), sign), d8, levels + 4 * i);
  }
}

void Pack(const Levels& levels, int bits, std::byte* packed) {
  (bits == 2 ? Pack2 : Pack4)(levels.data(), reinterpret_cast<std::uint8_t*>(packed));
}

void Unpack(const std::byte* packed, int bits, Levels& levels) {
  (bits == 2 ? Unpack2 : Unpack4)(reinterpret_cast<const std::uint8_t*>(packed), levels.data());
}

HWY_INLINE hn::Vec<Floats> Value(const std::int8_t* levels, hn::Vec<Floats> unit) {
  const hn::Rebind<std::int8_t, Floats> d8;
  const hn::RebindToSigned<Floats> di;
  return hn::Mul(hn::ConvertTo(Floats(), hn::PromoteTo(di, hn::LoadU(d8, levels))), unit);
}

// A few vectors at a time stay in registers while the ranks go by.
void SumLevels(std::span<const Scaled> ranks, std::span<float> sum) {
  const Floats d;
  constexpr std::size_t kLanes = hn::MaxLanes(d), kVectors = 4, kGroup = kVectors * kLanes;
  const std::size_t whole = sum.size() / kGroup * kGroup;
  for (std::size_t i = 0; i < whole; i += kGroup) {
    hn::Vec<Floats> totals[kVectors];
    for (auto& total : totals) total = hn::Zero(d);
    for (const Scaled& rank : ranks) {
      const auto unit = hn::Set(d, rank.unit);
      for (std::size_t v = 0; v < kVectors; ++v)
        totals[v] = hn::Add(totals[v], Value(rank.levels + i + v * kLanes, unit));
    }
    for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(totals[v], d, sum.data() + i + v * kLanes);
  }
  for (std::size_t i = whole; i < sum.size(); ++i) {
    float total = 0;
    for (const Scaled& rank : ranks) total += rank.unit * static_cast<float>(rank.levels[i]);
    sum[i] = total;
  }
}

void AddLevels(Scaled rank, std::span<float> x) {
  const Floats d;
  const auto unit = hn::Set(d, rank.unit);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= x.size(); i += hn::Lanes(d))
    hn::StoreU(hn::Add(hn::LoadU(d, x.data() + i), Value(rank.levels + i, unit)), d, x.data() + i);
  for (; i < x.size(); ++i) x[i] += rank.unit * static_cast<float>(rank.levels[i]);
}

#endif

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace accordion::kernels {

HWY_EXPORT(Pack);
HWY_EXPORT(Unpack);
HWY_EXPORT(SumLevels);
HWY_EXPORT(AddLevels);

void pack(const Levels& levels, int bits, std::span<std::byte> packed) noexcept {
  if (packed.empty()) return;
  if (bits == 8) {
    std::memcpy(packed.data(), levels.data(), packed.size());
  } else if (packed.size() == kChunk * bits / 8) {
    HWY_DYNAMIC_DISPATCH(Pack)(levels, bits, packed.data());
  } else {
    std::byte whole[kChunk / 2];
    HWY_DYNAMIC_DISPATCH(Pack)(levels, bits, whole);
    std::copy_n(whole, packed.size(), packed.data());
  }
}

void unpack(std::span<const std::byte> packed, int bits, Levels& levels) noexcept {
  if (packed.empty()) return;
  if (bits == 8) {
    std::memcpy(levels.data(), packed.data(), packed.size());
  } else if (packed.size() == kChunk * bits / 8) {
    HWY_DYNAMIC_DISPATCH(Unpack)(packed.data(), bits, levels);
  } else {
    std::byte whole[kChunk / 2] = {};
    std::copy_n(packed.data(), packed.size(), whole);
    HWY_DYNAMIC_DISPATCH(Unpack)(whole, bits, levels);
  }
}

void sum_levels(std::span<const Scaled> ranks, std::span<float> sum) noexcept {
  HWY_DYNAMIC_DISPATCH(SumLevels)(ranks, sum);
}

void add_levels(Scaled rank, std::span<float> x) noexcept {
  HWY_DYNAMIC_DISPATCH(AddLevels)(rank, x);
}

}  // namespace accordion::kernels
#endif
