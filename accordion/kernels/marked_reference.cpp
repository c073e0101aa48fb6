#include <algorithm>
#include <bit>
#include <cmath>

#include "accordion/kernels/draws.h"
#include "accordion/kernels/marked.h"

namespace accordion::kernels::reference {

std::size_t toss(RandomKey key, std::uint16_t heads, std::size_t n, std::span<std::uint64_t> marks) noexcept {
  std::fill(marks.begin(), marks.end(), 0);
  std::size_t marked = 0;
  Draws draws;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % kChunk == 0) reference::draw(key, i / kChunk, draws);
    const auto words = std::bit_cast<std::array<std::uint64_t, kChunk / 4>>(draws);
    std::uint32_t number = 0;
    for (std::size_t t = 0; t < 16; ++t) number |= (words[8 * t + i % kChunk / 64] >> i % 64 & 1) << t;
    if (number >= heads) continue;
    marks[i / 64] |= std::uint64_t{1} << i % 64;
    ++marked;
  }
  return marked;
}

bool take_marked(std::span<const std::uint64_t> marks, std::span<const float> gradient,
                 std::span<const float> residual, std::span<float> next, float* values) noexcept {
  bool finite = true;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const bool marked = marks[i / 64] >> (i % 64) & 1;
    const float a = residual.empty() ? gradient[i] : gradient[i] + residual[i];
    finite = finite && std::isfinite(a);
    if (marked) *values++ = a;
    if (!next.empty()) next[i] = marked ? 0.0f : a;
  }
  return finite;
}

void put_marked(std::span<const std::uint64_t> marks, const float* values, double factor,
                std::span<float> out) noexcept {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = marks[i / 64] >> (i % 64) & 1 ? static_cast<float>(*values++ * factor) : 0.0f;
}

}  // namespace accordion::kernels::reference
