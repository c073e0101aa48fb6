#include <algorithm>
#include <bit>
#include <cmath>

#include "accordion/kernels/halves.h"

namespace accordion::kernels::reference {
namespace {

constexpr float kLargestBfloat16 = 0x1.fep127f;

template <auto kNarrow, auto kWiden>
Narrowed narrow(std::span<const float> gradient, std::span<const float> residual, float divisor,
                float largest, std::span<std::uint16_t> target, std::span<float> next) {
  Narrowed result;
  const float factor = 1 / divisor;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float a = residual.empty() ? gradient[i] : gradient[i] + residual[i];
    if (!std::isfinite(a)) result.finite = false;
    if (std::fabs(a * factor) > largest) ++result.saturated;
    target[i] = kNarrow(a * factor);
    if (!residual.empty()) next[i] = a - kWiden(target[i]) * divisor;
  }
  return result;
}

template <auto kNarrow, auto kWiden>
void sum(std::span<const std::uint16_t* const> parts, std::span<std::uint16_t> target) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    float total = 0;
    for (const std::uint16_t* part : parts) total += kWiden(part[i]);
    target[i] = kNarrow(total);
  }
}

}  // namespace

std::uint16_t to_half(float x) noexcept {
  const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (std::isnan(x)) return sign | 0x7e00;
  const float magnitude = std::min(std::fabs(x), kLargestHalf);
  // A half has 11 bits from its leading one down, but none below 2^-24.
  const int exponent = std::max(magnitude == 0 ? -14 : std::ilogb(magnitude), -14);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // Rounding up to the next power of two carries into the exponent by itself.
  return static_cast<std::uint16_t>(sign | (((exponent + 14) << 10) + steps));
}

std::uint16_t to_bfloat16(float x) noexcept {
  if (std::isnan(x)) return 0x7fc0;
  const auto bits = std::bit_cast<std::uint32_t>(std::clamp(x, -kLargestBfloat16, kLargestBfloat16));
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_half(std::uint16_t x) noexcept {
  const int exponent = x >> 10 & 31, fraction = x & 1023;
  const float magnitude = exponent == 31  ? (fraction != 0 ? std::nanf("") : HUGE_VALF)
                          : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                          : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return (x & 0x8000) != 0 ? -magnitude : magnitude;
}

float from_bfloat16(std::uint16_t x) noexcept {
  return std::bit_cast<float>(std::uint32_t{x} << 16);
}

Narrowed to_halves(std::span<const float> gradient, std::span<const float> residual, float divisor,
                   std::span<std::uint16_t> target, std::span<float> next) noexcept {
  return narrow<to_half, from_half>(gradient, residual, divisor, kLargestHalf, target, next);
}

Narrowed to_bfloat16s(std::span<const float> gradient, std::span<const float> residual, float divisor,
                      std::span<std::uint16_t> target, std::span<float> next) noexcept {
  return narrow<to_bfloat16, from_bfloat16>(gradient, residual, divisor, kLargestBfloat16, target, next);
}

void from_halves(std::span<const std::uint16_t> x, std::span<float> target) noexcept {
  std::transform(x.begin(), x.end(), target.begin(), from_half);
}

void from_bfloat16s(std::span<const std::uint16_t> x, std::span<float> target) noexcept {
  std::transform(x.begin(), x.end(), target.begin(), from_bfloat16);
}

void sum_halves(std::span<const std::uint16_t* const> parts, std::span<std::uint16_t> target) noexcept {
  sum<to_half, from_half>(parts, target);
}

void sum_bfloat16s(std::span<const std::uint16_t* const> parts, std::span<std::uint16_t> target) noexcept {
  sum<to_bfloat16, from_bfloat16>(parts, target);
}

}  // namespace accordion::kernels::reference
