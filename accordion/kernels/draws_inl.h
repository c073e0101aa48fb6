// The generators of draws.h as vectors, for kernels that use their bits where they arise. Compiled once per
// instruction set, as the kernels are; for vectors of a length known at compile time.
#if defined(ACCORDION_KERNELS_DRAWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ACCORDION_KERNELS_DRAWS_INL_H
#undef ACCORDION_KERNELS_DRAWS_INL_H
#else
#define ACCORDION_KERNELS_DRAWS_INL_H
#endif

#include <hwy/highway.h>

#include "accordion/kernels/draws.h"

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

// D: vectors of 64-bit words, one generator a lane.
template <class D>
class Generators {
 public:
  using V = hwy::HWY_NAMESPACE::Vec<D>;
  static constexpr std::size_t kLanes = hwy::HWY_NAMESPACE::MaxLanes(D()), kVectors = kDrawLanes / kLanes;

  // Philox's keys, round by round.
  static constexpr int kRounds = 7;
  struct Keys {
    explicit HWY_INLINE Keys(RandomKey key) {
      auto low = static_cast<std::uint32_t>(key.value), high = static_cast<std::uint32_t>(key.value >> 32);
      for (int round = 0; round < kRounds; ++round, low += 0x9E3779B9u, high += 0xBB67AE85u) {
        key0[round] = hwy::HWY_NAMESPACE::Set(D(), low);
        key1[round] = hwy::HWY_NAMESPACE::Set(D(), high);
      }
    }
    V key0[kRounds], key1[kRounds];
  };

  // `order` says which generators the first vector holds, of the numbers below kLanes; the others follow it.
  HWY_INLINE Generators(const Keys& keys, std::uint64_t chunk, V order) {
    namespace hn = hwy::HWY_NAMESPACE;
    for (std::size_t v = 0; v < kVectors; ++v) {
      Philox philox(hn::Add(order, hn::Set(D(), kDrawLanes * chunk + v * kLanes)));
      for (int round = 0; round < kRounds; ++round) philox.Round(keys.key0[round], keys.key1[round]);
      s0_[v] = Philox::Join(philox.x0, philox.x1);
      s1_[v] = Philox::Join(philox.x2, philox.x3);
    }
  }

  // A step of the generators in vector v.
  HWY_INLINE V Next(std::size_t v) {
    namespace hn = hwy::HWY_NAMESPACE;
    const auto sum = hn::Add(s0_[v], s1_[v]), x = hn::Xor(s0_[v], s1_[v]);
    s0_[v] = hn::Xor(hn::Xor(RotateLeft24(s0_[v]), x), hn::ShiftLeft<16>(x));
    s1_[v] = hn::RotateRight<64 - 37>(x);
    return sum;
  }

 private:
  // Whole bytes: one shuffle instead of two shifts and an or.
  static HWY_INLINE V RotateLeft24(V x) {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::Repartition<std::uint8_t, D> d8;
    HWY_ALIGN static constexpr std::uint8_t kFrom[16] = {5,  6,  7,  0, 1, 2,  3,  4,
                                                         13, 14, 15, 8, 9, 10, 11, 12};
    return hn::BitCast(D(), hn::TableLookupBytes(hn::BitCast(d8, x), hn::LoadDup128(d8, kFrom)));
  }

  // A 32-bit word in the low half of each 64-bit lane. What is left in the high halves does no harm: the
  // multiplication does not read it.
  struct Philox {
    using Words = hwy::HWY_NAMESPACE::RepartitionToNarrow<D>;
    V x0, x1, x2, x3;

    explicit HWY_INLINE Philox(V blocks)
        : x0(blocks),
          x1(hwy::HWY_NAMESPACE::ShiftRight<32>(blocks)),
          x2(hwy::HWY_NAMESPACE::Zero(D())),
          x3(x2) {}

    HWY_INLINE void Round(V key0, V key1) {
      namespace hn = hwy::HWY_NAMESPACE;
      const auto p0 = Multiply(x0, 0xD2511F53u), p1 = Multiply(x2, 0xCD9E8D57u);
      x0 = hn::Xor(hn::Xor(x1, key0), hn::ShiftRight<32>(p1));
      x2 = hn::Xor(hn::Xor(x3, key1), hn::ShiftRight<32>(p0));
      x1 = p1;
      x3 = p0;
    }

    static HWY_INLINE V Multiply(V x, std::uint32_t by) {
      namespace hn = hwy::HWY_NAMESPACE;
      return hn::MulEven(hn::BitCast(Words(), x), hn::BitCast(Words(), hn::Set(D(), by)));
    }

    static HWY_INLINE V Join(V low, V high) {
      namespace hn = hwy::HWY_NAMESPACE;
      return hn::BitCast(
          D(), hn::OddEven(hn::BitCast(Words(), hn::ShiftLeft<32>(high)), hn::BitCast(Words(), low)));
    }
  };

  V s0_[kVectors], s1_[kVectors];
};

#endif

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ACCORDION_KERNELS_DRAWS_INL_H
