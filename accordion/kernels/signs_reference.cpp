#include <algorithm>
#include <bit>
#include <cmath>

#include "accordion/kernels/signs.h"

namespace accordion::kernels::reference {
namespace {

bool positive(const Signs& rank, std::size_t i) {
  return (rank.words[i / 32] >> (i % 32) & 1) != 0;
}

}  // namespace

Magnitudes measure_signs(std::span<const float> gradient, std::span<const float> residual,
                         std::span<std::uint32_t> words) noexcept {
  std::fill(words.begin(), words.end(), 0u);
  double sums[8] = {};
  std::uint32_t largest = 0;  // Bits of magnitudes compare like the magnitudes; infinity and NaN come last.
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float a = residual.empty() ? gradient[i] : gradient[i] + residual[i];
    if (a >= 0) words[i / 32] |= 1u << (i % 32);
    sums[i % 8] += std::fabs(a);
    largest = std::max(largest, std::bit_cast<std::uint32_t>(std::fabs(a)));
  }
  return {((sums[0] + sums[2]) + (sums[4] + sums[6])) + ((sums[1] + sums[3]) + (sums[5] + sums[7])),
          std::bit_cast<float>(largest)};
}

void subtract_signs(std::span<const float> gradient, std::span<const float> residual, float scale,
                    std::span<float> next) noexcept {
  for (std::size_t i = 0; i < next.size(); ++i) {
    const float a = residual.empty() ? gradient[i] : gradient[i] + residual[i];
    next[i] = a >= 0 ? a - scale : a + scale;
  }
}

void count_votes(std::span<const Signs> ranks, std::span<float> vote) noexcept {
  for (std::size_t i = 0; i < vote.size(); ++i) {
    int count = 0;
    for (const Signs& rank : ranks) count += positive(rank, i) ? 1 : -1;
    vote[i] = static_cast<float>((count > 0) - (count < 0));
  }
}

void sum_signs(std::span<const Signs> ranks, std::span<float> sum) noexcept {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] = 0;
    for (const Signs& rank : ranks) sum[i] += positive(rank, i) ? rank.scale : -rank.scale;
  }
}

}  // namespace accordion::kernels::reference
