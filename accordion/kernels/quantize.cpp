#include "accordion/kernels/quantize.h"

#include <algorithm>
#include <bit>
#include <cstring>

// Highway compiles the part between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once per instruction set and
// picks the best one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "accordion/kernels/quantize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

// No vectors, or vectors of a length the compiler does not know: the plain loops.
float LargestMagnitude(std::span<const float> x) {
  return reference::largest_magnitude(x);
}
Moments MomentsOf(std::span<const float> x, float shift) {
  return reference::moments(x, shift);
}
void Quantize(std::span<const float> x, float scale, int steps, const std::uint16_t* draws,
              std::int8_t* levels) {
  reference::quantize(x, scale, steps, draws, levels);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// Loops take groups of this many elements, a multiple of every vector's length; a last short group is padded
// with zeros.
constexpr std::size_t kGroup = 32;
using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
using Shorts = hn::RepartitionToNarrow<Ints>;

// Magnitudes as integers, which compare alike and put infinity and NaN last.
template <class V>
HWY_INLINE auto MagnitudeBits(V x) {
  return hn::BitCast(Ints(), hn::Abs(x));
}

std::int32_t LargestBits(std::span<const float> span) {
  const float* x = span.data();
  const std::size_t n = span.size();
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(Ints()), b = a;
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Max(a, MagnitudeBits(hn::LoadU(d, x + i)));
    b = hn::Max(b, MagnitudeBits(hn::LoadU(d, x + i + lanes)));
  }
  std::int32_t largest = hn::GetLane(hn::MaxOfLanes(Ints(), hn::Max(a, b)));
  for (; i < n; ++i) largest = std::max(largest, std::bit_cast<std::int32_t>(x[i]) & 0x7fffffff);
  return largest;
}

float LargestMagnitude(std::span<const float> x) {
  return std::bit_cast<float>(LargestBits(x));
}

// Eight sums each, element i in sum i % 8, whatever the vector's length.
Moments MomentsOf(std::span<const float> x, float shift) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const hn::RebindToSigned<decltype(narrow)> bits;
  constexpr std::size_t kLanes = hn::MaxLanes(d), kVectors = 8 / kLanes;
  const auto center = hn::Set(narrow, shift);
  hn::Vec<decltype(d)> sums[kVectors], squares[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) sums[v] = squares[v] = hn::Zero(d);
  auto largest = hn::Zero(bits);
  const auto take = [&](const float* eight) HWY_ATTR {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto value = hn::LoadU(narrow, eight + v * kLanes);
      largest = hn::Max(largest, hn::BitCast(bits, hn::Abs(value)));
      const auto difference = hn::PromoteTo(d, hn::Sub(value, center));
      sums[v] = hn::Add(sums[v], difference);
      // A float's square is exact in double precision, so that fusing this or not is the same.
      squares[v] = hn::MulAdd(difference, difference, squares[v]);
    }
  };
  std::size_t i = 0;
  for (; i + 8 <= x.size(); i += 8) take(x.data() + i);
  const std::span<const float> rest = x.subspan(i);
  std::int32_t most = hn::GetLane(hn::MaxOfLanes(bits, largest));
  if (!rest.empty()) {
    float eight[8];
    std::fill(std::copy(rest.begin(), rest.end(), eight), eight + 8, shift);
    take(eight);
    most = std::max(most, LargestBits(rest));
  }
  HWY_ALIGN double s[8], q[8];
  for (std::size_t v = 0; v < kVectors; ++v) {
    hn::Store(sums[v], d, s + v * kLanes);
    hn::Store(squares[v], d, q + v * kLanes);
  }
  return {((s[0] + s[2]) + (s[4] + s[6])) + ((s[1] + s[3]) + (s[5] + s[7])),
          ((q[0] + q[2]) + (q[4] + q[6])) + ((q[1] + q[3]) + (q[5] + q[7])), std::bit_cast<float>(most)};
}

// Narrows 2 * lanes integers, in order.
HWY_INLINE hn::Vec<Shorts> Narrow(hn::Vec<Ints> low, hn::Vec<Ints> high) {
  // Blocks of 128 bits are narrowed on their own: low0 high0 low1 high1 ... in units of 64 bits.
  const hn::RebindToUnsigned<Ints> d32;
  constexpr std::uint32_t kUnits = static_cast<std::uint32_t>(hn::MaxLanes(d32)) / 2;
  HWY_ALIGN std::uint32_t from[2 * kUnits];
  for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
    const std::uint32_t source = unit < kUnits / 2 ? 2 * unit : 2 * (unit - kUnits / 2) + 1;
    from[2 * unit] = 2 * source;
    from[2 * unit + 1] = 2 * source + 1;
  }
  const auto narrow = hn::BitCast(d32, hn::ReorderDemote2To(Shorts(), low, high));
  return hn::BitCast(Shorts(), hn::TableLookupLanes(narrow, hn::SetTableIndices(d32, from)));
}

// Signs need no care: adding less than 1 and rounding down is right on both sides of 0.
template <int kBits, bool kLift>
void QuantizeGroups(const float* x, std::size_t n, float factor, float most, const std::uint16_t* draws,
                    std::int8_t* levels) {
  const Floats d;
  const Ints di;
  const hn::Rebind<std::uint16_t, Floats> d16;
  const hn::Rebind<std::int8_t, Shorts> d8;
  const std::size_t lanes = hn::Lanes(d);
  // Added to a small enough float, this leaves it rounded to a whole number, in the low bits.
  const auto magic = hn::Set(d, 0x1.8p23f);
  const auto zero = hn::ShiftRight<kBits>(hn::BitCast(di, magic));
  const auto by = hn::Set(d, factor), cap = hn::Set(d, most), floor = hn::Set(d, -most);
  const auto level = [&](std::size_t i) HWY_ATTR {
    auto value = hn::LoadU(d, x + i);
    if constexpr (kLift) value = hn::Mul(value, hn::Set(d, kLiftBy));
    const auto fixed = hn::BitCast(di, hn::Add(hn::Max(hn::Min(hn::Mul(value, by), cap), floor), magic));
    const auto random = hn::PromoteTo(di, hn::ShiftRight<16 - kBits>(hn::LoadU(d16, draws + i)));
    return hn::Sub(hn::ShiftRight<kBits>(hn::Add(fixed, random)), zero);
  };
  for (std::size_t i = 0; i < n; i += 2 * lanes)
    hn::StoreU(hn::DemoteTo(d8, Narrow(level(i), level(i + lanes))), d8, levels + i);
}

void Quantize(std::span<const float> x, float scale, int steps, const std::uint16_t* draws,
              std::int8_t* levels) {
  const bool lift = scale > 0 && scale < kLiftBelow;
  const int bits = distance_bits(steps);
  const auto most = static_cast<float>(steps << bits);
  const float factor =
      scale > 0 ? static_cast<float>(static_cast<double>(most) / (lift ? scale * kLiftBy : scale)) : 0;
  const auto groups = lift ? (bits == 16 ? QuantizeGroups<16, true> : QuantizeGroups<13, true>)
                           : (bits == 16 ? QuantizeGroups<16, false> : QuantizeGroups<13, false>);
  const std::size_t whole = x.size() / kGroup * kGroup, rest = x.size() - whole;
  groups(x.data(), whole, factor, most, draws, levels);
  if (rest == 0) return;
  float last[kGroup] = {};
  std::uint16_t last_draws[kGroup] = {};
  std::int8_t last_levels[kGroup];
  std::memcpy(last, x.data() + whole, rest * sizeof(float));
  std::memcpy(last_draws, draws + whole, rest * sizeof(std::uint16_t));
  groups(last, kGroup, factor, most, last_draws, last_levels);
  std::memcpy(levels + whole, last_levels, rest);
}

#endif

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace accordion::kernels {

HWY_EXPORT(LargestMagnitude);
HWY_EXPORT(MomentsOf);
HWY_EXPORT(Quantize);

float largest_magnitude(std::span<const float> x) noexcept {
  return HWY_DYNAMIC_DISPATCH(LargestMagnitude)(x);
}

Moments moments(std::span<const float> x, float shift) noexcept {
  return HWY_DYNAMIC_DISPATCH(MomentsOf)(x, shift);
}

void quantize(std::span<const float> x, float scale, int steps, const std::uint16_t* draws,
              std::int8_t* levels) noexcept {
  HWY_DYNAMIC_DISPATCH(Quantize)(x, scale, steps, draws, levels);
}

}  // namespace accordion::kernels
#endif
