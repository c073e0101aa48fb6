// Stochastic rounding of floats to small integers.
//
// Every result is the same on every instruction set: rounding is integer arithmetic, and sums have a
// fixed order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace accordion::kernels {

// The largest |x|; infinite or NaN exactly if some x is.
float largest_magnitude(std::span<const float> x) noexcept;

// Sums of x - shift, a difference in single precision, and of its square. With a shift among the x, equal x
// give exactly zero.
struct Moments {
  double sum = 0, squares = 0;
  float largest = 0;  // |x|, as above.
};
Moments moments(std::span<const float> x, float shift) noexcept;

// Rounds x / scale * steps to one of the whole numbers beside it, the upper one with a probability that is
// the distance from the lower. Beyond `scale` on either side, x becomes -steps or steps; a zero scale gives
// zeros. Up to 127 steps. The distance has 16 bits, or 13 for many steps: the quotient is then still exact to
// the last of them, so that a multiple of scale / steps never becomes its neighbour.
void quantize(std::span<const float> x, float scale, int steps, const std::uint16_t* draws,
              std::int8_t* levels) noexcept;
constexpr int distance_bits(int steps) {
  return steps <= 7 ? 16 : 13;
}
// The reciprocal of a very small scale would overflow: its entries are first made larger.
inline constexpr float kLiftBelow = 0x1p-64f, kLiftBy = 0x1p64f;

namespace reference {
float largest_magnitude(std::span<const float> x) noexcept;
Moments moments(std::span<const float> x, float shift) noexcept;
void quantize(std::span<const float> x, float scale, int steps, const std::uint16_t* draws,
              std::int8_t* levels) noexcept;
}  // namespace reference

}  // namespace accordion::kernels
