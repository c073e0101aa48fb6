#include "accordion/kernels/select.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

// Highway compiles the part between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once per instruction set and
// picks the best one at run time.
// AVX-512 is left out: there, packing the picked entries with its own instruction takes 1.8 times (and storing
// with it, four times) what AVX2 takes with a table.
#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "accordion/kernels/select.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

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

// How many entries fall into each part of a range of magnitudes. Neighbours often fall into the same one; two
// tables keep one increment from waiting for the other.
constexpr int kSlotBits = 11;
using Slots = std::array<std::array<std::uint32_t, std::size_t{1} << kSlotBits>, 2>;

}  // namespace accordion::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Ints = hn::RebindToSigned<Floats>;
using Doubles = hn::ScalableTag<double>;
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

// The part that the three sweeps share. `compute` returns a's vector and stores what it likes; `put` gets the
// mask.
template <bool kSplit, class Compute, class Put>
HWY_INLINE Swept Sweep(std::size_t n, Magnitude low, Magnitude high, Room room, Compute compute, Put put) {
  const Floats d;
  const Ints di;
  const Doubles dd;
  Staging staging(room);
  Swept swept;
  const auto below_low = hn::Set(di, static_cast<std::int32_t>(low) - 1);
  const auto below_high = hn::Set(di, static_cast<std::int32_t>(high) - 1);
  auto largest = hn::Zero(di);
  auto total0 = hn::Zero(dd), total1 = total0;
  ForVectors(
      n,
      [&](auto whole, std::size_t i, std::size_t lanes) HWY_ATTR {
        const auto a = compute(whole, i, lanes);
        const auto size = hn::Abs(a);
        const auto bits = hn::BitCast(di, size);
        largest = hn::Max(largest, bits);
#if HWY_TARGET == HWY_SCALAR
        total0 = hn::Add(total0, hn::PromoteTo(dd, size));
#else
        const hn::Half<Floats> dh;
        total0 = hn::Add(total0, hn::PromoteTo(dd, hn::LowerHalf(dh, size)));
        total1 = hn::Add(total1, hn::PromoteTo(dd, hn::UpperHalf(dh, size)));
#endif
        auto picked = hn::Gt(bits, below_low);
        if constexpr (!whole) picked = hn::And(picked, hn::FirstN(di, lanes));
        if constexpr (kSplit) {
          auto above = hn::Gt(bits, below_high);
          if constexpr (!whole) above = hn::And(above, hn::FirstN(di, lanes));
          swept.above += hn::CountTrue(di, above);
          picked = hn::AndNot(above, picked);
          put(whole, i, lanes, a, hn::RebindMask(d, above));
        } else {
          put(whole, i, lanes, a, hn::RebindMask(d, picked));
        }
        // Without asking whether any is: a branch that nobody can predict costs more.
        staging.pick(a, picked, i);
      },
      [&] { staging.flush(); });
  swept.picked = staging.picked();
  swept.largest = static_cast<Magnitude>(hn::GetLane(hn::MaxOfLanes(di, largest)));
  swept.total = hn::GetLane(hn::SumOfLanes(dd, hn::Add(total0, total1)));
  return swept;
}

template <class Whole>
HWY_INLINE hn::Vec<Floats> LoadSum(Whole whole, const float* x, const float* y, std::size_t i,
                                   std::size_t lanes) {
  const auto a = Load(whole, x + i, lanes);
  return y == nullptr ? a : hn::Add(a, Load(whole, y + i, lanes));
}

Swept SweepOne(const Sum& a, Magnitude low, float* next, Room room) {
  const float *x = a.x.data(), *y = a.y.empty() ? nullptr : a.y.data();
  return Sweep<false>(
      a.size(), low, low, room,
      [=](auto whole, std::size_t i, std::size_t lanes) HWY_ATTR { return LoadSum(whole, x, y, i, lanes); },
      [=](auto whole, std::size_t i, std::size_t lanes, auto v, auto picked) HWY_ATTR {
        if (next != nullptr) Store(whole, hn::IfThenZeroElse(picked, v), next + i, lanes);
      });
}

Swept SweepSplit(const Sum& a, Magnitude low, Magnitude high, float divisor, float* next, float* out,
                 Room room) {
  const Floats d;
  const float *x = a.x.data(), *y = a.y.empty() ? nullptr : a.y.data();
  return Sweep<true>(
      a.size(), low, high, room,
      [=](auto whole, std::size_t i, std::size_t lanes) HWY_ATTR { return LoadSum(whole, x, y, i, lanes); },
      [=](auto whole, std::size_t i, std::size_t lanes, auto v, auto above) HWY_ATTR {
        const auto scaled = divisor == 1 ? v : hn::Div(v, hn::Set(d, divisor));
        Store(whole, hn::IfThenElseZero(above, scaled), out + i, lanes);
        if (next != nullptr) Store(whole, hn::IfThenZeroElse(above, v), next + i, lanes);
      });
}

template <bool kNesterov>
Swept SweepMomentum(const MomentumUpdate& update, Magnitude low, float* next_u, float* next_v, Room room) {
  const Floats d;
  const float *gradient = update.gradient.data(), *u = update.u.data();
  const float* v = update.v.empty() ? nullptr : update.v.data();
  const float factor = update.factor;
  return Sweep<false>(
      update.gradient.size(), low, low, room,
      [=](auto whole, std::size_t i, std::size_t lanes) HWY_ATTR {
        const auto g = Load(whole, gradient + i, lanes);
        const auto m = hn::Set(d, factor);
        auto sum = Load(whole, u + i, lanes);
        sum = kNesterov ? hn::Mul(m, hn::Add(sum, g)) : hn::MulAdd(m, sum, g);
        Store(whole, sum, next_u + i, lanes);
        if constexpr (kNesterov) sum = hn::Add(sum, g);
        return v == nullptr ? sum : hn::Add(Load(whole, v + i, lanes), sum);
      },
      [=](auto whole, std::size_t i, std::size_t lanes, auto a, auto) HWY_ATTR {
        if (next_v != nullptr) Store(whole, a, next_v + i, lanes);
      });
}

Swept SweepHeavyBall(const MomentumUpdate& update, Magnitude low, float* next_u, float* next_v, Room room) {
  return SweepMomentum<false>(update, low, next_u, next_v, room);
}
Swept SweepNesterov(const MomentumUpdate& update, Magnitude low, float* next_u, float* next_v, Room room) {
  return SweepMomentum<true>(update, low, next_u, next_v, room);
}

std::size_t CountAtLeast(const Sum& a, Magnitude low) {
  const Ints di;
  const float *x = a.x.data(), *y = a.y.empty() ? nullptr : a.y.data();
  const auto below_low = hn::Set(di, static_cast<std::int32_t>(low) - 1);
  std::size_t count = 0;
  auto counts = hn::Zero(di);
  ForVectors(
      a.size(),
      [&](auto whole, std::size_t i, std::size_t lanes) HWY_ATTR {
        const auto bits = hn::BitCast(di, hn::Abs(LoadSum(whole, x, y, i, lanes)));
        auto mask = hn::Gt(bits, below_low);
        if constexpr (!whole) mask = hn::And(mask, hn::FirstN(di, lanes));
        counts = hn::Sub(counts, hn::VecFromMask(di, mask));
      },
      [&]() HWY_ATTR {
        count += static_cast<std::size_t>(hn::GetLane(hn::SumOfLanes(di, counts)));
        counts = hn::Zero(di);
      });
  return count;
}

// Writes the marked lanes of both, and whatever comes to lie in the lanes beyond them. Returns how many.
template <class Mask>
HWY_INLINE std::size_t CompressBoth(hn::Vec<Ints> indices, hn::Vec<Floats> values, Mask mask,
                                    std::int32_t* to_indices, float* to_values) {
  const Floats d;
  const Ints di;
  if constexpr (HWY_MAX_BYTES <= 32) {
    std::uint8_t bits[8];
    hn::StoreMaskBits(di, mask, bits);
    const auto places =
        hn::PromoteTo(di, hn::LoadU(hn::Rebind<std::uint8_t, Ints>(), kSetBits[bits[0]].data()));
    hn::StoreU(hn::TableLookupLanes(indices, hn::IndicesFromVec(di, places)), di, to_indices);
    hn::StoreU(hn::TableLookupLanes(values, hn::IndicesFromVec(d, places)), d, to_values);
    return hn::CountTrue(di, mask);
  } else {
    hn::StoreU(hn::Compress(indices, mask), di, to_indices);
    hn::StoreU(hn::Compress(values, hn::RebindMask(d, mask)), d, to_values);
    return hn::CountTrue(di, mask);
  }
}

std::size_t PartAll(Room entries, Magnitude sure, Room taken) {
  const Floats d;
  const Ints di;
  const std::size_t lanes = hn::Lanes(d), n = entries.indices.size(), room = taken.indices.size();
  auto* indices = reinterpret_cast<std::int32_t*>(entries.indices.data());
  auto* taken_indices = reinterpret_cast<std::int32_t*>(taken.indices.data());
  float *values = entries.values.data(), *taken_values = taken.values.data();
  const auto below_sure = hn::Set(di, static_cast<std::int32_t>(sure) - 1);
  std::size_t i = 0, left = 0, at = 0;
  // What stays is written over entries that have been read; what is taken, only while a whole vector fits.
  for (; i + lanes <= n && at + lanes <= room; i += lanes) {
    const auto index = hn::LoadU(di, indices + i);
    const auto value = hn::LoadU(d, values + i);
    const auto takes = hn::Gt(hn::BitCast(di, hn::Abs(value)), below_sure);
    at += CompressBoth(index, value, takes, taken_indices + at, taken_values + at);
    left += CompressBoth(index, value, hn::Not(takes), indices + left, values + left);
  }
  for (; i < n; ++i) {
    const std::int32_t index = indices[i];
    const float value = values[i];
    if (magnitude(value) < sure) {
      indices[left] = index;
      values[left++] = value;
    } else if (at < room) {
      taken_indices[at] = index;
      taken_values[at++] = value;
    }
  }
  return left;
}

std::size_t CountSlots(const Sum& a, Magnitude low, Magnitude high, int shift, Slots& slots) {
  const Ints di;
  const float *x = a.x.data(), *y = a.y.empty() ? nullptr : a.y.data();
  const auto below_low = hn::Set(di, static_cast<std::int32_t>(low) - 1);
  const auto below_high = hn::Set(di, static_cast<std::int32_t>(high - 1));
  std::size_t above = 0;
  Staging staging(Room{});
  ForVectors(
      a.size(),
      [&](auto whole, std::size_t i, std::size_t lanes) HWY_ATTR {
        const auto value = LoadSum(whole, x, y, i, lanes);
        const auto bits = hn::BitCast(di, hn::Abs(value));
        auto beyond = hn::Gt(bits, below_high), inside = hn::AndNot(beyond, hn::Gt(bits, below_low));
        if constexpr (!whole) {
          beyond = hn::And(beyond, hn::FirstN(di, lanes));
          inside = hn::And(inside, hn::FirstN(di, lanes));
        }
        above += hn::CountTrue(di, beyond);
        staging.pick(value, inside, i);
      },
      [&] {
        staging.drain([&](const float* values, std::size_t count) {
          for (std::size_t i = 0; i < count; ++i) ++slots[i & 1][(magnitude(values[i]) - low) >> shift];
        });
      });
  return above;
}

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace accordion::kernels {

HWY_EXPORT(SweepOne);
HWY_EXPORT(SweepSplit);
HWY_EXPORT(SweepHeavyBall);
HWY_EXPORT(SweepNesterov);
HWY_EXPORT(CountAtLeast);
HWY_EXPORT(CountSlots);
HWY_EXPORT(PartAll);

namespace {
float* data_or_null(std::span<float> x) {
  return x.empty() ? nullptr : x.data();
}
}  // namespace

Swept sweep(Sum a, Magnitude low, std::span<float> next, Room room) noexcept {
  return HWY_DYNAMIC_DISPATCH(SweepOne)(a, low, data_or_null(next), room);
}

Swept sweep_split(Sum a, Magnitude low, Magnitude high, float divisor, std::span<float> next,
                  std::span<float> out, Room room) noexcept {
  return HWY_DYNAMIC_DISPATCH(SweepSplit)(a, low, high, divisor, data_or_null(next), out.data(), room);
}

Swept sweep_momentum(const MomentumUpdate& update, Magnitude low, std::span<float> next_u,
                     std::span<float> next_v, Room room) noexcept {
  if (update.nesterov)
    return HWY_DYNAMIC_DISPATCH(SweepNesterov)(update, low, next_u.data(), data_or_null(next_v), room);
  return HWY_DYNAMIC_DISPATCH(SweepHeavyBall)(update, low, next_u.data(), data_or_null(next_v), room);
}

std::size_t count_at_least(Sum a, Magnitude low) noexcept {
  return HWY_DYNAMIC_DISPATCH(CountAtLeast)(a, low);
}

std::size_t part(Room entries, Magnitude sure, Room taken) noexcept {
  return HWY_DYNAMIC_DISPATCH(PartAll)(entries, sure, taken);
}

namespace {

// One digit of a radix selection, counted among the entries whose higher digits are `prefix`.
template <int kShift, int kBits, class Values>
void find_digit(const Values& values, std::size_t n, std::size_t k, Kth& kth) {
  Slots slots = {};
  const Magnitude prefix = kth.value >> (kShift + kBits), mask = (Magnitude{1} << kBits) - 1;
  for (std::size_t i = 0; i < n; ++i) {
    const Magnitude size = magnitude(values(i));
    if (size >> (kShift + kBits) == prefix) ++slots[i & 1][(size >> kShift) & mask];
  }
  Magnitude digit = mask;
  const auto in_slot = [&] { return std::size_t{slots[0][digit]} + slots[1][digit]; };
  for (; digit > 0 && kth.above + in_slot() < k; --digit) kth.above += in_slot();
  kth.value |= digit << kShift;
  kth.equal = in_slot();
}

template <class Values>
Kth radix_select(const Values& values, std::size_t n, std::size_t k) {
  Kth kth;
  find_digit<20, kSlotBits>(values, n, k, kth);
  find_digit<10, 10>(values, n, k, kth);
  find_digit<0, 10>(values, n, k, kth);
  return kth;
}

Kth radix_select(const Sum& a, std::size_t k) {
  const float *x = a.x.data(), *y = a.y.data();
  if (a.y.empty()) return radix_select([=](std::size_t i) { return x[i]; }, a.size(), k);
  return radix_select([=](std::size_t i) { return x[i] + y[i]; }, a.size(), k);
}

// Many entries: a sample tells a range that has the k-th almost surely, and only what falls into it, a few in
// a hundred, goes to slots.
constexpr std::size_t kSample = 1024, kMany = 8 * kSample;

struct Range {
  Magnitude low = 0, high = kBeyondAll + 1;
};

Range guess_range(const Sum& a, std::size_t k) {
  float sample[kSample];
  const std::size_t stride = a.size() / kSample;
  for (std::size_t i = 0; i < kSample; ++i) sample[i] = a[i * stride];
  const double share = static_cast<double>(k) / static_cast<double>(a.size());
  const double expected = share * kSample, slack = 4 * std::sqrt(expected * (1 - share)) + 4;
  Range range;
  if (expected + slack < kSample)
    range.low = radix_select({sample}, static_cast<std::size_t>(expected + slack)).value;
  if (expected - slack >= 1)
    range.high = radix_select({sample}, static_cast<std::size_t>(expected - slack)).value + 1;
  return range;
}

}  // namespace

Kth kth_largest(Sum a, std::size_t k) noexcept {
  if (a.size() < kMany) return radix_select(a, k);
  Range range = guess_range(a, k);
  while (true) {
    const int shift = std::max(0, static_cast<int>(std::bit_width(range.high - range.low - 1)) - kSlotBits);
    Slots slots = {};
    std::size_t above = HWY_DYNAMIC_DISPATCH(CountSlots)(a, range.low, range.high, shift, slots);
    auto slot = static_cast<Magnitude>(range.high - range.low - 1) >> shift;
    const auto in_slot = [&] { return std::size_t{slots[0][slot]} + slots[1][slot]; };
    for (; slot > 0 && above + in_slot() < k; --slot) above += in_slot();
    if (above >= k || above + in_slot() < k) return radix_select(a, k);  // Not in the range after all.
    if (shift == 0) return {range.low + slot, above, in_slot()};
    range.low += slot << shift;
    range.high = std::min(range.high, range.low + (Magnitude{1} << shift));
  }
}

}  // namespace accordion::kernels
#endif
