#include "accordion/kernels/marked.h"

#include "accordion/kernels/draws.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "accordion/kernels/marked.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kWord = 64;
constexpr std::uint64_t kAll = ~std::uint64_t{0};

// Sixty-four numbers at a time are compared with `heads`, from the lowest bit up: where the bits differ, the
// higher bit decides, and where they do not, those below it.
std::size_t Toss(RandomKey key, std::uint16_t heads, std::size_t n, std::uint64_t* marks) {
  const std::size_t words = (n + kWord - 1) / kWord;
  if (heads == 0) return (std::fill_n(marks, words, 0), 0);
  const int first = std::countr_zero(heads);  // Bits below its last one cannot matter.
  std::size_t marked = 0;
  HWY_ALIGN Draws draws;
  HWY_ALIGN std::uint64_t below[kChunk / kWord];
  const hn::CappedTag<std::uint64_t, kChunk / kWord> d;
  for (std::size_t begin = 0; begin < words; begin += kChunk / kWord) {
    draw(key, begin * kWord / kChunk, draws);
    const auto* bits = reinterpret_cast<const std::uint64_t*>(draws.data());
    for (std::size_t w = 0; w < kChunk / kWord; w += hn::Lanes(d)) {
      auto less = hn::Zero(d);
      for (int t = first; t < 16; ++t) {
        const auto bit = hn::Load(d, bits + static_cast<std::size_t>(t) * (kChunk / kWord) + w);
        less = (heads >> t & 1) != 0 ? hn::Or(less, hn::Not(bit)) : hn::AndNot(bit, less);
      }
      hn::Store(less, d, below + w);
    }
    const std::size_t count = std::min(words - begin, kChunk / kWord);
    if (begin + count == words && n % kWord != 0) below[count - 1] &= kAll >> (kWord - n % kWord);
    for (std::size_t w = 0; w < count; ++w) {
      marks[begin + w] = below[w];
      marked += static_cast<std::size_t>(std::popcount(below[w]));
    }
  }
  return marked;
}

// One word's entries: a goes to next, or nowhere if that is null. Returns the largest magnitude's bits, above
// those of infinity for NaN.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> Compensate(D d, const float* gradient, const float* residual,
                                                     float* next, hn::Vec<hn::RebindToSigned<D>> largest) {
  const hn::RebindToSigned<D> bits;
  for (std::size_t i = 0; i < kWord; i += hn::Lanes(d)) {
    auto a = hn::LoadU(d, gradient + i);
    if (residual != nullptr) a = hn::Add(a, hn::LoadU(d, residual + i));
    if (next != nullptr) hn::StoreU(a, d, next + i);
    largest = hn::Max(largest, hn::BitCast(bits, hn::Abs(a)));
  }
  return largest;
}

bool TakeMarked(const std::uint64_t* marks, const float* gradient, const float* residual, float* next,
                std::size_t n, float* values) {
  const hn::CappedTag<float, kWord> d;
  const hn::RebindToSigned<decltype(d)> bits;
  auto largest = hn::Zero(bits);
  std::size_t i = 0;
  for (; i + kWord <= n; i += kWord) {
    const float* from = next != nullptr ? next + i : gradient + i;
    largest = next != nullptr ? Compensate(d, gradient + i, residual + i, next + i, largest)
                              : Compensate(d, gradient + i, nullptr, nullptr, largest);
    std::uint64_t word = marks[i / kWord];
    if (word == kAll) {
      values = std::copy_n(from, kWord, values);
      if (next != nullptr) std::fill_n(next + i, kWord, 0.0f);
      continue;
    }
    for (; word != 0; word &= word - 1) {
      const int at = std::countr_zero(word);
      *values++ = from[at];
      if (next != nullptr) next[i + at] = 0;
    }
  }
  bool finite = hn::GetLane(hn::MaxOfLanes(bits, largest)) < 0x7f800000;
  for (; i < n; ++i) {
    const bool marked = marks[i / kWord] >> (i % kWord) & 1;
    const float a = next != nullptr ? gradient[i] + residual[i] : gradient[i];
    finite = finite && std::isfinite(a);
    if (marked) *values++ = a;
    if (next != nullptr) next[i] = marked ? 0.0f : a;
  }
  return finite;
}

void PutMarked(const std::uint64_t* marks, const float* values, double factor, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; i += kWord) {
    std::uint64_t word = marks[i / kWord];
    const std::size_t count = std::min(kWord, n - i);
    if (word == kAll) {
      for (std::size_t k = 0; k < kWord; ++k) out[i + k] = static_cast<float>(values[k] * factor);
      values += kWord;
      continue;
    }
    std::fill_n(out + i, count, 0.0f);
    for (; word != 0; word &= word - 1)
      out[i + std::countr_zero(word)] = static_cast<float>(*values++ * factor);
  }
}

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace accordion::kernels {

HWY_EXPORT(Toss);
HWY_EXPORT(TakeMarked);
HWY_EXPORT(PutMarked);

std::size_t toss(RandomKey key, std::uint16_t heads, std::size_t n, std::span<std::uint64_t> marks) noexcept {
  return HWY_DYNAMIC_DISPATCH(Toss)(key, heads, n, marks.data());
}

bool take_marked(std::span<const std::uint64_t> marks, std::span<const float> gradient,
                 std::span<const float> residual, std::span<float> next, float* values) noexcept {
  return HWY_DYNAMIC_DISPATCH(TakeMarked)(marks.data(), gradient.data(), residual.data(),
                                          next.empty() ? nullptr : next.data(), gradient.size(), values);
}

void put_marked(std::span<const std::uint64_t> marks, const float* values, double factor,
                std::span<float> out) noexcept {
  HWY_DYNAMIC_DISPATCH(PutMarked)(marks.data(), values, factor, out.data(), out.size());
}

}  // namespace accordion::kernels
#endif
