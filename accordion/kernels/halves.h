// Sixteen-bit floats: IEEE half precision and bfloat16, rounded to nearest, ties to even.
//
// Sums of several are added in single precision in the order given and rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace accordion::kernels {

inline constexpr float kLargestHalf = 65504;

struct Narrowed {
  bool finite = true;         // Whether all of a was.
  std::size_t saturated = 0;  // Entries beyond what the format holds, sent as its largest.
};

// target = a / divisor, where a = gradient + residual, or the gradient alone if `residual` is empty.
// With a residual, next = a - target * divisor. Divisors are whole and below 2^13, so the product is exact.
Narrowed to_halves(std::span<const float> gradient, std::span<const float> residual, float divisor,
                   std::span<std::uint16_t> target, std::span<float> next) noexcept;
Narrowed to_bfloat16s(std::span<const float> gradient, std::span<const float> residual, float divisor,
                      std::span<std::uint16_t> target, std::span<float> next) noexcept;

void from_halves(std::span<const std::uint16_t> x, std::span<float> target) noexcept;
void from_bfloat16s(std::span<const std::uint16_t> x, std::span<float> target) noexcept;

// target = sum of parts, each as long as `target`, which may be one of them. A finite sum out of range
// becomes the largest number of the format.
void sum_halves(std::span<const std::uint16_t* const> parts, std::span<std::uint16_t> target) noexcept;
void sum_bfloat16s(std::span<const std::uint16_t* const> parts, std::span<std::uint16_t> target) noexcept;

namespace reference {
std::uint16_t to_half(float x) noexcept;
std::uint16_t to_bfloat16(float x) noexcept;
float from_half(std::uint16_t x) noexcept;
float from_bfloat16(std::uint16_t x) noexcept;
Narrowed to_halves(std::span<const float> gradient, std::span<const float> residual, float divisor,
                   std::span<std::uint16_t> target, std::span<float> next) noexcept;
Narrowed to_bfloat16s(std::span<const float> gradient, std::span<const float> residual, float divisor,
                      std::span<std::uint16_t> target, std::span<float> next) noexcept;
void from_halves(std::span<const std::uint16_t> x, std::span<float> target) noexcept;
void from_bfloat16s(std::span<const std::uint16_t> x, std::span<float> target) noexcept;
void sum_halves(std::span<const std::uint16_t* const> parts, std::span<std::uint16_t> target) noexcept;
void sum_bfloat16s(std::span<const std::uint16_t* const> parts, std::span<std::uint16_t> target) noexcept;
}  // namespace reference

}  // namespace accordion::kernels
