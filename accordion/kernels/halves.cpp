#include "accordion/kernels/halves.h"

#include <algorithm>
#include <bit>
#include <cmath>

// Highway compiles the part between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once per instruction set and
// picks the best one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "accordion/kernels/halves.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {

using Halves = std::span<std::uint16_t>;
using Gradient = std::span<const float>;
using Parts = std::span<const std::uint16_t* const>;

#if HWY_TARGET == HWY_SCALAR

// No vectors: the plain loops.
Narrowed ToHalves(Gradient g, Gradient e, float divisor, Halves target, std::span<float> next) {
  return reference::to_halves(g, e, divisor, target, next);
}
Narrowed ToBfloat16s(Gradient g, Gradient e, float divisor, Halves target, std::span<float> next) {
  return reference::to_bfloat16s(g, e, divisor, target, next);
}
void FromHalves(std::span<const std::uint16_t> x, std::span<float> target) {
  reference::from_halves(x, target);
}
void FromBfloat16s(std::span<const std::uint16_t> x, std::span<float> target) {
  reference::from_bfloat16s(x, target);
}
void SumHalves(Parts parts, Halves target) {
  reference::sum_halves(parts, target);
}
void SumBfloat16s(Parts parts, Halves target) {
  reference::sum_bfloat16s(parts, target);
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::CappedTag<float, 16>;
using Words = hn::RebindToUnsigned<Floats>;
using Ints = hn::RebindToSigned<Floats>;
using Shorts = hn::Rebind<std::uint16_t, Floats>;
constexpr std::size_t kGroup = 16;  // A multiple of every vector's length; a last short group is padded.

// Narrow() takes magnitudes up to kLargest, and NaN.
struct Half {
  static constexpr float kLargest = kLargestHalf;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
  static HWY_INLINE hn::Vec<Shorts> Narrow(hn::Vec<Floats> x) {
    return hn::BitCast(Shorts(), hn::DemoteTo(hn::Rebind<hwy::float16_t, Floats>(), x));
  }
  static HWY_INLINE hn::Vec<Floats> Widen(hn::Vec<Shorts> x) {
    return hn::PromoteTo(Floats(), hn::BitCast(hn::Rebind<hwy::float16_t, Floats>(), x));
  }
#else
  // Highway's own conversion without hardware support truncates.
  static HWY_INLINE hn::Vec<Shorts> Narrow(hn::Vec<Floats> x) {
    const Words d;
    const auto magnitude = hn::Abs(x);
    const auto bits = hn::BitCast(d, magnitude);
    const auto sign = hn::ShiftRight<16>(hn::And(hn::BitCast(d, x), hn::Set(d, 0x80000000u)));
    // Below 2^-14 a half counts in steps of 2^-24, and so does a float between 1/2 and 1: its addition rounds
    // for us.
    const auto half = hn::Set(Floats(), 0.5f);
    const auto tiny = hn::Sub(hn::BitCast(d, hn::Add(magnitude, half)), hn::BitCast(d, half));
    const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(d, 1u));
    const auto bias =
        hn::Set(d, 0xfffu - (112u << 23));  // Exponents are 112 smaller; 0xfff + odd rounds ties to even.
    const auto normal = hn::ShiftRight<13>(hn::Add(hn::Add(bits, odd), bias));
    auto result =
        hn::IfThenElse(hn::RebindMask(d, hn::Lt(magnitude, hn::Set(Floats(), 0x1p-14f))), tiny, normal);
    result = hn::IfThenElse(hn::RebindMask(d, hn::Ne(x, x)), hn::Set(d, 0x7e00u), result);
    return hn::DemoteTo(Shorts(), hn::BitCast(Ints(), hn::Or(result, sign)));
  }
  static HWY_INLINE hn::Vec<Floats> Widen(hn::Vec<Shorts> x) {
    const Words d;
    const auto bits = hn::PromoteTo(d, x);
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffu));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
    const auto moved = hn::Add(hn::ShiftLeft<13>(magnitude), hn::Set(d, 112u << 23));
    const auto beyond = hn::Gt(hn::BitCast(Ints(), magnitude), hn::Set(Ints(), 0x7bff));  // Infinity and NaN.
    const auto normal =
        hn::IfThenElse(hn::RebindMask(d, beyond), hn::Or(moved, hn::Set(d, 0xffu << 23)), moved);
    const auto tiny =
        hn::Mul(hn::ConvertTo(Floats(), hn::BitCast(Ints(), magnitude)), hn::Set(Floats(), 0x1p-24f));
    const auto is_tiny = hn::Lt(hn::BitCast(Ints(), magnitude), hn::Set(Ints(), 0x400));
    return hn::BitCast(
        Floats(), hn::Or(sign, hn::IfThenElse(hn::RebindMask(d, is_tiny), hn::BitCast(d, tiny), normal)));
  }
#endif
};

struct Bfloat16 {
  static constexpr float kLargest = 0x1.fep127f;

  static HWY_INLINE hn::Vec<Shorts> Narrow(hn::Vec<Floats> x) {
    const Words d;
    const auto bits = hn::BitCast(d, x);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, odd), hn::Set(d, 0x7fffu)));
    const auto result = hn::IfThenElse(hn::RebindMask(d, hn::Ne(x, x)), hn::Set(d, 0x7fc0u), rounded);
    return hn::DemoteTo(Shorts(), hn::BitCast(Ints(), result));
  }
  static HWY_INLINE hn::Vec<Floats> Widen(hn::Vec<Shorts> x) {
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(Words(), x)));
  }
};

template <class Format>
HWY_INLINE hn::Vec<Floats> Saturate(hn::Vec<Floats> x, hn::Mask<Floats> beyond) {
  return hn::IfThenElse(beyond, hn::CopySign(hn::Set(Floats(), Format::kLargest), x), x);
}

// Saturation costs more than the rest, and is rare: it is left out until the largest magnitude says
// otherwise.
template <class Format, bool kFeedback, bool kSaturate = false>
Narrowed Encode(Gradient gradient, Gradient residual, float divisor, Halves target, std::span<float> next) {
  const Floats d;
  const Shorts d16;
  const Ints di;
  const auto factor = hn::Set(d, 1 / divisor), times = hn::Set(d, divisor),
             largest = hn::Set(d, Format::kLargest);
  auto most = hn::Zero(di),
       saturated = most;  // Magnitudes as integers compare alike; infinity and NaN come last.
  const auto narrow = [&](const float* g, const float* e, std::uint16_t* out, float* rest) HWY_ATTR {
    auto a = hn::LoadU(d, g);
    if constexpr (kFeedback) a = hn::Add(a, hn::LoadU(d, e));
    most = hn::Max(most, hn::BitCast(di, hn::Abs(a)));
    auto share = hn::Mul(a, factor);
    if constexpr (kSaturate) {
      const auto beyond = hn::Gt(hn::Abs(share), largest);
      saturated = hn::Sub(saturated, hn::VecFromMask(di, hn::RebindMask(di, beyond)));
      share = Saturate<Format>(share, beyond);
    }
    const auto sent = Format::Narrow(share);
    hn::StoreU(sent, d16, out);
    if constexpr (kFeedback) hn::StoreU(hn::Sub(a, hn::Mul(Format::Widen(sent), times)), d, rest);
  };
  const std::size_t n = gradient.size(), lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    narrow(gradient.data() + i, kFeedback ? residual.data() + i : nullptr, target.data() + i,
           kFeedback ? next.data() + i : nullptr);
  if (i < n) {
    float g[kGroup] = {}, e[kGroup] = {}, last_next[kGroup];
    std::uint16_t last[kGroup];
    std::copy_n(gradient.data() + i, n - i, g);
    if constexpr (kFeedback) std::copy_n(residual.data() + i, n - i, e);
    narrow(g, e, last, last_next);
    std::copy_n(last, n - i, target.data() + i);
    if constexpr (kFeedback) std::copy_n(last_next, n - i, next.data() + i);
  }
  const auto top = std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(di, most)));
  if constexpr (!kSaturate)
    if (top * (1 / divisor) > Format::kLargest)
      return Encode<Format, kFeedback, true>(gradient, residual, divisor, target, next);
  return {std::isfinite(top), static_cast<std::size_t>(hn::GetLane(hn::SumOfLanes(di, saturated)))};
}

template <class Format>
void Decode(std::span<const std::uint16_t> x, std::span<float> target) {
  const Floats d;
  const std::size_t n = x.size(), lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(Format::Widen(hn::LoadU(Shorts(), x.data() + i)), d, target.data() + i);
  if (i == n) return;
  std::uint16_t last[kGroup] = {};
  float wide[kGroup];
  std::copy_n(x.data() + i, n - i, last);
  hn::StoreU(Format::Widen(hn::LoadU(Shorts(), last)), d, wide);
  std::copy_n(wide, n - i, target.data() + i);
}

template <class Format>
void Sum(Parts parts, Halves target) {
  const Floats d;
  const Shorts d16;
  const auto sum = [&](auto load) HWY_ATTR {
    auto total = hn::Zero(d);
    for (const std::uint16_t* part : parts) total = hn::Add(total, Format::Widen(load(part)));
    return Format::Narrow(Saturate<Format>(total, hn::Gt(hn::Abs(total), hn::Set(d, Format::kLargest))));
  };
  const std::size_t n = target.size(), lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(sum([&](const std::uint16_t* part) HWY_ATTR { return hn::LoadU(d16, part + i); }), d16,
               target.data() + i);
  if (i == n) return;
  std::uint16_t last[kGroup] = {};
  hn::StoreU(sum([&](const std::uint16_t* part) HWY_ATTR {
               std::copy_n(part + i, n - i, last);
               return hn::LoadU(d16, last);
             }),
             d16, last);
  std::copy_n(last, n - i, target.data() + i);
}

Narrowed ToHalves(Gradient g, Gradient e, float divisor, Halves target, std::span<float> next) {
  return (e.empty() ? Encode<Half, false> : Encode<Half, true>)(g, e, divisor, target, next);
}
Narrowed ToBfloat16s(Gradient g, Gradient e, float divisor, Halves target, std::span<float> next) {
  return (e.empty() ? Encode<Bfloat16, false> : Encode<Bfloat16, true>)(g, e, divisor, target, next);
}
void FromHalves(std::span<const std::uint16_t> x, std::span<float> target) {
  Decode<Half>(x, target);
}
void FromBfloat16s(std::span<const std::uint16_t> x, std::span<float> target) {
  Decode<Bfloat16>(x, target);
}
void SumHalves(Parts parts, Halves target) {
  Sum<Half>(parts, target);
}
void SumBfloat16s(Parts parts, Halves target) {
  Sum<Bfloat16>(parts, target);
}

#endif

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace accordion::kernels {

HWY_EXPORT(ToHalves);
HWY_EXPORT(ToBfloat16s);
HWY_EXPORT(FromHalves);
HWY_EXPORT(FromBfloat16s);
HWY_EXPORT(SumHalves);
HWY_EXPORT(SumBfloat16s);

Narrowed to_halves(std::span<const float> gradient, std::span<const float> residual, float divisor,
                   std::span<std::uint16_t> target, std::span<float> next) noexcept {
  return HWY_DYNAMIC_DISPATCH(ToHalves)(gradient, residual, divisor, target, next);
}

Narrowed to_bfloat16s(std::span<const float> gradient, std::span<const float> residual, float divisor,
                      std::span<std::uint16_t> target, std::span<float> next) noexcept {
  return HWY_DYNAMIC_DISPATCH(ToBfloat16s)(gradient, residual, divisor, target, next);
}

void from_halves(std::span<const std::uint16_t> x, std::span<float> target) noexcept {
  HWY_DYNAMIC_DISPATCH(FromHalves)(x, target);
}

void from_bfloat16s(std::span<const std::uint16_t> x, std::span<float> target) noexcept {
  HWY_DYNAMIC_DISPATCH(FromBfloat16s)(x, target);
}

void sum_halves(std::span<const std::uint16_t* const> parts, std::span<std::uint16_t> target) noexcept {
  HWY_DYNAMIC_DISPATCH(SumHalves)(parts, target);
}

void sum_bfloat16s(std::span<const std::uint16_t* const> parts, std::span<std::uint16_t> target) noexcept {
  HWY_DYNAMIC_DISPATCH(SumBfloat16s)(parts, target);
}

}  // namespace accordion::kernels
#endif
