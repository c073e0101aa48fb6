#include "accordion/kernels/kth_largest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

// As in select.cpp, and for the same reason.
#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "accordion/kernels/kth_largest.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "accordion/kernels/select_inl.h"

#ifndef ACCORDION_KERNELS_KTH_SLOTS
#define ACCORDION_KERNELS_KTH_SLOTS
namespace accordion::kernels {

// How many entries fall into each part of a range of magnitudes. Neighbours often fall into the same one; two
// tables keep one increment from waiting for the other.
constexpr int kSlotBits = 11;
using Slots = std::array<std::array<std::uint32_t, std::size_t{1} << kSlotBits>, 2>;

}  // namespace accordion::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {

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

HWY_EXPORT(CountSlots);

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
