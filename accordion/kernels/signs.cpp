#include "accordion/kernels/signs.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <cstring>

// Highway compiles the part between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once per instruction set and
// picks the best one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "accordion/kernels/signs.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

// No vectors, or vectors of a length the compiler does not know: the plain loops.
float PackSigns(std::span<const float> gradient, std::span<const float> residual,
                std::span<std::uint32_t> words) {
  return reference::measure_signs(gradient, residual, words).largest;
}
Magnitudes MeasureSigns(std::span<const float> gradient, std::span<const float> residual,
                        std::span<std::uint32_t> words) {
  return reference::measure_signs(gradient, residual, words);
}
void SubtractSigns(std::span<const float> gradient, std::span<const float> residual, float scale,
                   std::span<float> next) {
  reference::subtract_signs(gradient, residual, scale, next);
}
void CountVotes(std::span<const Signs> ranks, std::span<float> vote) {
  reference::count_votes(ranks, vote);
}
void SumSigns(std::span<const Signs> ranks, std::span<float> sum) {
  reference::sum_signs(ranks, sum);
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::CappedTag<float, 16>;
using Words = hn::RebindToUnsigned<Floats>;
constexpr std::size_t kWord = 32;  // Elements a word; a multiple of every vector's length.
constexpr std::size_t kLanes = hn::MaxLanes(Floats()), kVectors = kWord / kLanes;

// From here on what is written is not read again before other layers have pushed it out of the caches:
// writing past them saves reading what is overwritten.
constexpr std::size_t kPastCaches = std::size_t{1} << 18;

template <bool kFeedback>
HWY_INLINE hn::Vec<Floats> Load(const float* gradient, const float* residual, std::size_t i) {
  const auto g = hn::LoadU(Floats(), gradient + i);
  if constexpr (kFeedback) return hn::Add(g, hn::LoadU(Floats(), residual + i));
  return g;
}

// Calls word(gradient, residual, i) for each whole word of elements, then once for a last word padded with
// zeros.
template <class Word>
HWY_INLINE void ForEachWord(std::span<const float> gradient, std::span<const float> residual, Word word) {
  const std::size_t n = gradient.size(), whole = n / kWord * kWord;
  for (std::size_t i = 0; i < whole; i += kWord)
    word(gradient.data() + i, residual.empty() ? nullptr : residual.data() + i, i);
  if (whole == n) return;
  float g[kWord] = {}, e[kWord] = {};
  std::memcpy(g, gradient.data() + whole, (n - whole) * sizeof(float));
  if (!residual.empty()) std::memcpy(e, residual.data() + whole, (n - whole) * sizeof(float));
  word(g, e, whole);
}

template <bool kFeedback, bool kSum>
Magnitudes Pack(std::span<const float> gradient, std::span<const float> residual,
                std::span<std::uint32_t> words) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  // Eight sums, element i in sum i % 8, whatever the vector's length.
  const hn::CappedTag<double, 8> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  constexpr std::size_t kLanes = hn::MaxLanes(wide), kVectors = 8 / kLanes;
  hn::Vec<decltype(wide)> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(wide);
  auto largest = hn::Zero(di);
  ForEachWord(gradient, residual, [&](const float* g, const float* e, std::size_t first) HWY_ATTR {
    std::uint32_t word = 0;
    HWY_ALIGN float magnitudes[kWord];
    for (std::size_t i = 0; i < kWord; i += hn::Lanes(d)) {
      const auto a = Load<kFeedback>(g, e, i);
      const auto magnitude = hn::Abs(a);
      largest = hn::Max(largest, hn::BitCast(di, magnitude));
      if constexpr (kSum) hn::Store(magnitude, d, magnitudes + i);
      std::uint8_t bits[8] = {};
      hn::StoreMaskBits(d, hn::Ge(a, hn::Zero(d)), bits);
      word |= static_cast<std::uint32_t>(bits[0] | bits[1] << 8) << i;
    }
    words[first / kWord] = word;
    if constexpr (kSum) {
      for (std::size_t i = 0; i < kWord; i += kLanes) {
        auto& sum = sums[i / kLanes % kVectors];
        sum = hn::Add(sum, hn::PromoteTo(wide, hn::Load(narrow, magnitudes + i)));
      }
    }
  });
  if (gradient.size() % kWord != 0) words.back() &= (1u << gradient.size() % kWord) - 1;
  HWY_ALIGN double s[8];
  for (std::size_t v = 0; v < kVectors; ++v) hn::Store(sums[v], wide, s + v * kLanes);
  return {((s[0] + s[2]) + (s[4] + s[6])) + ((s[1] + s[3]) + (s[5] + s[7])),
          std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(di, largest)))};
}

float PackSigns(std::span<const float> gradient, std::span<const float> residual,
                std::span<std::uint32_t> words) {
  return (residual.empty() ? Pack<false, false> : Pack<true, false>)(gradient, residual, words).largest;
}
Magnitudes MeasureSigns(std::span<const float> gradient, std::span<const float> residual,
                        std::span<std::uint32_t> words) {
  return (residual.empty() ? Pack<false, true> : Pack<true, true>)(gradient, residual, words);
}

template <bool kFeedback>
void Subtract(std::span<const float> gradient, std::span<const float> residual, float scale,
              std::span<float> next) {
  const Floats d;
  const auto by = hn::Set(d, scale);
  const auto left = [&](std::size_t i) HWY_ATTR {
    const auto a = Load<kFeedback>(gradient.data(), residual.data(), i);
    return hn::Sub(a, hn::IfThenElse(hn::Ge(a, hn::Zero(d)), by, hn::Neg(by)));
  };
  const auto single = [&](std::size_t i) {
    const float a = kFeedback ? gradient[i] + residual[i] : gradient[i];
    next[i] = a >= 0 ? a - scale : a + scale;
  };
  std::size_t i = 0;
  if (next.size() >= kPastCaches) {
    for (; reinterpret_cast<std::uintptr_t>(next.data() + i) % (sizeof(float) * kLanes) != 0; ++i) single(i);
    for (; i + kLanes <= next.size(); i += kLanes) hn::Stream(left(i), d, next.data() + i);
    hwy::FlushStream();
  }
  for (; i + kLanes <= next.size(); i += kLanes) hn::StoreU(left(i), d, next.data() + i);
  for (; i < next.size(); ++i) single(i);
}

void SubtractSigns(std::span<const float> gradient, std::span<const float> residual, float scale,
                   std::span<float> next) {
  (residual.empty() ? Subtract<false> : Subtract<true>)(gradient, residual, scale, next);
}

// Lane mask: bit first + lane of the word.
HWY_ALIGN constexpr std::uint32_t kBits[kWord] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};
HWY_INLINE hn::Mask<Floats> Spread(std::uint32_t word, std::size_t first) {
  const auto bit = hn::Load(Words(), kBits + first);
  return hn::RebindMask(Floats(), hn::Eq(hn::And(hn::Set(Words(), word), bit), bit));
}

// Writes the n first of a word's elements.
HWY_INLINE void StoreWord(const hn::Vec<Floats>* vectors, float* out, std::size_t n) {
  const Floats d;
  float rest[kWord];
  float* target = n >= kWord ? out : rest;
  for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(vectors[v], d, target + v * kLanes);
  if (n < kWord) std::copy_n(rest, n, out);
}

// Counts a vector of words at once: bit b of plane p is bit p of element b's count, and adding a rank's word
// is a carry that ripples through the planes. The count is then compared with half the ranks, from the
// highest plane down.
template <bool kTies>
void Count(std::span<const Signs> ranks, std::span<float> vote) {
  const Floats d;
  const Words dw;
  const auto one = hn::Set(d, 1.0f), minus = hn::Set(d, -1.0f);
  const std::size_t words = sign_words(vote.size());
  const auto half = static_cast<std::uint32_t>(ranks.size() / 2);
  HWY_ALIGN std::uint32_t planes[16][kLanes], above_words[kLanes], tie_words[kLanes], last[kLanes] = {};
  for (std::size_t first = 0; first < words; first += kLanes) {
    const std::size_t count = std::min(kLanes, words - first);
    int depth = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::uint32_t* source = ranks[rank].words + first;
      if (count < kLanes) source = (std::copy_n(source, count, last), last);
      auto carry = hn::LoadU(dw, source);
      const int needed = std::bit_width(rank + 1);
      if (needed > depth) hn::Store(hn::Zero(dw), dw, planes[depth++]);
      for (int p = 0; p < depth; ++p) {
        const auto plane = hn::Load(dw, planes[p]);
        hn::Store(hn::Xor(plane, carry), dw, planes[p]);
        carry = hn::And(plane, carry);
      }
    }
    auto above = hn::Zero(dw), equal = hn::Set(dw, ~0u);
    for (int p = depth - 1; p >= 0; --p) {
      const auto plane = hn::Load(dw, planes[p]), limit = hn::Set(dw, (half >> p & 1) != 0 ? ~0u : 0u);
      above = hn::Or(above, hn::And(equal, hn::AndNot(limit, plane)));
      equal = hn::AndNot(hn::Xor(plane, limit), equal);
    }
    hn::Store(above, dw, above_words);
    hn::Store(equal, dw, tie_words);
    for (std::size_t w = 0; w < count; ++w) {
      hn::Vec<Floats> signs[kVectors];
      for (std::size_t v = 0; v < kVectors; ++v) {
        signs[v] = hn::IfThenElse(Spread(above_words[w], v * kLanes), one, minus);
        if constexpr (kTies) signs[v] = hn::IfThenZeroElse(Spread(tie_words[w], v * kLanes), signs[v]);
      }
      const std::size_t i = (first + w) * kWord;
      StoreWord(signs, vote.data() + i, vote.size() - i);
    }
  }
}

// Of an odd number of ranks, half is rounded down: those at the limit have more against them than for them.
void CountVotes(std::span<const Signs> ranks, std::span<float> vote) {
  (ranks.size() % 2 == 0 ? Count<true> : Count<false>)(ranks, vote);
}

void SumSigns(std::span<const Signs> ranks, std::span<float> sum) {
  const Floats d;
  for (std::size_t i = 0; i < sum.size(); i += kWord) {
    hn::Vec<Floats> totals[kVectors];
    for (auto& total : totals) total = hn::Zero(d);
    for (const Signs& rank : ranks) {
      const std::uint32_t word = rank.words[i / kWord];
      const auto plus = hn::Set(d, rank.scale), minus = hn::Neg(plus);
      for (std::size_t v = 0; v < kVectors; ++v)
        totals[v] = hn::Add(totals[v], hn::IfThenElse(Spread(word, v * kLanes), plus, minus));
    }
    StoreWord(totals, sum.data() + i, sum.size() - i);
  }
}

#endif

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace accordion::kernels {

HWY_EXPORT(PackSigns);
HWY_EXPORT(MeasureSigns);
HWY_EXPORT(SubtractSigns);
HWY_EXPORT(CountVotes);
HWY_EXPORT(SumSigns);

float pack_signs(std::span<const float> gradient, std::span<const float> residual,
                 std::span<std::uint32_t> words) noexcept {
  return HWY_DYNAMIC_DISPATCH(PackSigns)(gradient, residual, words);
}

Magnitudes measure_signs(std::span<const float> gradient, std::span<const float> residual,
                         std::span<std::uint32_t> words) noexcept {
  return HWY_DYNAMIC_DISPATCH(MeasureSigns)(gradient, residual, words);
}

void subtract_signs(std::span<const float> gradient, std::span<const float> residual, float scale,
                    std::span<float> next) noexcept {
  HWY_DYNAMIC_DISPATCH(SubtractSigns)(gradient, residual, scale, next);
}

void count_votes(std::span<const Signs> ranks, std::span<float> vote) noexcept {
  HWY_DYNAMIC_DISPATCH(CountVotes)(ranks, vote);
}

void sum_signs(std::span<const Signs> ranks, std::span<float> sum) noexcept {
  HWY_DYNAMIC_DISPATCH(SumSigns)(ranks, sum);
}

}  // namespace accordion::kernels
#endif
