#include "accordion/kernels/select.h"

// Highway compiles the part between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once per instruction set and
// picks the best one at run time.
// AVX-512 is left out: there, packing the picked entries with its own instruction takes 1.8 times (and storing
// with it, four times) what AVX2 takes with a table.
#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "accordion/kernels/select.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "accordion/kernels/select_inl.h"

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {

using Doubles = hn::ScalableTag<double>;

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

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace accordion::kernels {

HWY_EXPORT(SweepOne);
HWY_EXPORT(SweepSplit);
HWY_EXPORT(SweepHeavyBall);
HWY_EXPORT(SweepNesterov);
HWY_EXPORT(CountAtLeast);
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

}  // namespace accordion::kernels
#endif
