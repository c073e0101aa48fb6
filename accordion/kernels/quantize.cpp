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
void Draw(RandomKey key, std::uint64_t chunk, Draws& draws) {
  reference::draw(key, chunk, draws);
}
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
void Pack(const Levels& levels, int bits, std::byte* packed) {
  reference::pack(levels, bits, {packed, kChunk * bits / 8});
}
void Unpack(const std::byte* packed, int bits, Levels& levels) {
  reference::unpack({packed, kChunk * bits / 8}, bits, levels);
}
void Dequantize(const std::int8_t* levels, float unit, std::span<float> x) {
  reference::dequantize(levels, unit, x);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// Loops take groups of this many elements, a multiple of every vector's length; a last short group is padded
// with zeros.
constexpr std::size_t kGroup = 32;
using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
using Shorts = hn::RepartitionToNarrow<Ints>;

// The reciprocal of a very small scale would overflow: its entries are first made larger.
constexpr float kLiftBelow = 0x1p-64f, kLiftBy = 0x1p64f;

// Philox with seven rounds, with a 32-bit word in the low half of each 64-bit lane. What is left in the high
// halves does no harm: the multiplication does not read it.
using Wide = hn::CappedTag<std::uint64_t, 8>;
using Words = hn::RepartitionToNarrow<Wide>;
constexpr int kRounds = 7;

struct Philox {
  using V = hn::Vec<Wide>;
  V x0, x1, x2, x3;

  explicit HWY_INLINE Philox(V blocks)
      : x0(blocks), x1(hn::ShiftRight<32>(blocks)), x2(hn::Zero(Wide())), x3(x2) {}

  HWY_INLINE void Round(V key0, V key1) {
    const auto p0 = hn::MulEven(hn::BitCast(Words(), x0), hn::BitCast(Words(), hn::Set(Wide(), 0xD2511F53u)));
    const auto p1 = hn::MulEven(hn::BitCast(Words(), x2), hn::BitCast(Words(), hn::Set(Wide(), 0xCD9E8D57u)));
    x0 = hn::Xor(hn::Xor(x1, key0), hn::ShiftRight<32>(p1));
    x2 = hn::Xor(hn::Xor(x3, key1), hn::ShiftRight<32>(p0));
    x1 = p1;
    x3 = p0;
  }

  HWY_INLINE void Store(std::uint64_t* low, std::uint64_t* high) const {
    hn::StoreU(Join(x0, x1), Wide(), low);
    hn::StoreU(Join(x2, x3), Wide(), high);
  }

  static HWY_INLINE V Join(V low, V high) {
    return hn::BitCast(Wide(),
                       hn::OddEven(hn::BitCast(Words(), hn::ShiftLeft<32>(high)), hn::BitCast(Words(), low)));
  }
};

void Draw(RandomKey key, std::uint64_t chunk, Draws& draws) {
  const Wide d;
  HWY_ALIGN std::uint64_t keys[2][kRounds][8];
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    hn::Store(hn::Set(d, static_cast<std::uint32_t>(key.value) + i * 0x9E3779B9u), d, keys[0][i]);
    hn::Store(hn::Set(d, static_cast<std::uint32_t>(key.value >> 32) + i * 0xBB67AE85u), d, keys[1][i]);
  }
  auto* out = reinterpret_cast<std::uint64_t*>(draws.data());
  // Two at a time, because the rounds of one wait on each other.
  const std::size_t lanes = hn::Lanes(d);
  auto blocks = hn::Iota(d, 64 * chunk);
  const auto step = hn::Set(d, lanes);
  for (std::size_t i = 0; i < 64; i += 2 * lanes) {
    Philox a(blocks), b(hn::Add(blocks, step));
    blocks = hn::Add(blocks, hn::Add(step, step));
    for (int r = 0; r < kRounds; ++r) {
      const auto key0 = hn::Load(d, keys[0][r]), key1 = hn::Load(d, keys[1][r]);
      a.Round(key0, key1);
      b.Round(key0, key1);
    }
    a.Store(out + i, out + 64 + i);
    b.Store(out + i + lanes, out + 64 + i + lanes);
  }
}

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

void Dequantize(const std::int8_t* levels, float unit, std::span<float> span) {
  const Floats d;
  const hn::Rebind<std::int8_t, Floats> d8;
  const auto by = hn::Set(d, unit);
  float* x = span.data();
  const std::size_t n = span.size();
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::Mul(hn::ConvertTo(d, hn::PromoteTo(Ints(), hn::LoadU(d8, levels + i))), by), d, x + i);
  for (; i < n; ++i) x[i] = unit * static_cast<float>(levels[i]);
}

#endif

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace accordion::kernels {

HWY_EXPORT(Draw);
HWY_EXPORT(LargestMagnitude);
HWY_EXPORT(MomentsOf);
HWY_EXPORT(Quantize);
HWY_EXPORT(Pack);
HWY_EXPORT(Unpack);
HWY_EXPORT(Dequantize);

void draw(RandomKey key, std::uint64_t chunk, Draws& draws) noexcept {
  HWY_DYNAMIC_DISPATCH(Draw)(key, chunk, draws);
}

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

void pack(const Levels& levels, int bits, std::span<std::byte> packed) noexcept {
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

void dequantize(const std::int8_t* levels, float unit, std::span<float> x) noexcept {
  HWY_DYNAMIC_DISPATCH(Dequantize)(levels, unit, x);
}

}  // namespace accordion::kernels
#endif
