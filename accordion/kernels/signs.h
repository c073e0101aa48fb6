// One bit an element: 1 where a >= 0, by comparison, so that -0 counts as positive. Element i is bit i % 32
// of word i / 32; the last word's other bits are 0.
//
// a = gradient + residual, or the gradient alone if `residual` is empty. All results are the same on every
// instruction set: sums have a fixed order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace accordion::kernels {

constexpr std::size_t sign_words(std::size_t n) {
  return (n + 31) / 32;
}

// Writes the signs and returns the largest |a|, which is infinite or NaN exactly if some a is.
float pack_signs(std::span<const float> gradient, std::span<const float> residual,
                 std::span<std::uint32_t> words) noexcept;

// The same, and the sum of |a|.
struct Magnitudes {
  double sum = 0;
  float largest = 0;
};
Magnitudes measure_signs(std::span<const float> gradient, std::span<const float> residual,
                         std::span<std::uint32_t> words) noexcept;

// next = a - scale * sign(a)
void subtract_signs(std::span<const float> gradient, std::span<const float> residual, float scale,
                    std::span<float> next) noexcept;

// One rank's signs.
struct Signs {
  const std::uint32_t* words;
  float scale;
};

// vote = the sign that most ranks have, 0 for a tie or no ranks. Scales do not matter. Below 2^16 ranks.
void count_votes(std::span<const Signs> ranks, std::span<float> vote) noexcept;

// sum = sum of scale * sign, in the order of ranks
void sum_signs(std::span<const Signs> ranks, std::span<float> sum) noexcept;

namespace reference {
Magnitudes measure_signs(std::span<const float> gradient, std::span<const float> residual,
                         std::span<std::uint32_t> words) noexcept;
void subtract_signs(std::span<const float> gradient, std::span<const float> residual, float scale,
                    std::span<float> next) noexcept;
void count_votes(std::span<const Signs> ranks, std::span<float> vote) noexcept;
void sum_signs(std::span<const Signs> ranks, std::span<float> sum) noexcept;
}  // namespace reference

}  // namespace accordion::kernels
