#include "accordion/kernels/draws.h"

// Highway compiles the part between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once per instruction set and
// picks the best one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "accordion/kernels/draws.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

// No vectors, or vectors of a length the compiler does not know: the plain loop.
void Draw(RandomKey key, std::uint64_t chunk, Draws& draws) {
  reference::draw(key, chunk, draws);
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using Wide = hn::CappedTag<std::uint64_t, kDrawLanes>;
using Words = hn::RepartitionToNarrow<Wide>;
using V = hn::Vec<Wide>;

// Philox, with a 32-bit word in the low half of each 64-bit lane. What is left in the high halves does no
// harm: the multiplication does not read it.
struct Philox {
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

  static HWY_INLINE V Join(V low, V high) {
    return hn::BitCast(Wide(),
                       hn::OddEven(hn::BitCast(Words(), hn::ShiftLeft<32>(high)), hn::BitCast(Words(), low)));
  }
};

void Draw(RandomKey key, std::uint64_t chunk, Draws& draws) {
  const Wide d;
  constexpr std::size_t kLanes = hn::MaxLanes(d), kVectors = kDrawLanes / kLanes;
  V s0[kVectors], s1[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) {
    Philox philox(hn::Add(hn::Iota(d, v * kLanes), hn::Set(d, kDrawLanes * chunk)));
    auto key0 = static_cast<std::uint32_t>(key.value), key1 = static_cast<std::uint32_t>(key.value >> 32);
    for (int round = 0; round < 7; ++round, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u)
      philox.Round(hn::Set(d, key0), hn::Set(d, key1));
    s0[v] = Philox::Join(philox.x0, philox.x1);
    s1[v] = Philox::Join(philox.x2, philox.x3);
  }
  auto* out = reinterpret_cast<std::uint64_t*>(draws.data());
  for (std::size_t step = 0; step < kDrawSteps; ++step)
    for (std::size_t v = 0; v < kVectors; ++v, out += kLanes) {
      hn::StoreU(hn::Add(s0[v], s1[v]), d, out);
      const auto x = hn::Xor(s0[v], s1[v]);
      s0[v] = hn::Xor(hn::Xor(hn::RotateRight<64 - 24>(s0[v]), x), hn::ShiftLeft<16>(x));
      s1[v] = hn::RotateRight<64 - 37>(x);
    }
}

#endif

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace accordion::kernels {

HWY_EXPORT(Draw);

void draw(RandomKey key, std::uint64_t chunk, Draws& draws) noexcept {
  HWY_DYNAMIC_DISPATCH(Draw)(key, chunk, draws);
}

}  // namespace accordion::kernels
#endif
