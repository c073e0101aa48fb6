// Stochastic rounding of floats to small integers, in chunks that stay in the first-level cache.
//
// Every result is the same on every instruction set: random bits are Philox4x32, rounding is integer
// arithmetic, and sums have a fixed order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "accordion/base/random.h"

namespace accordion::kernels {

inline constexpr std::size_t kChunk = 512;

using Draws = std::array<std::uint16_t, kChunk>;
using Levels = std::array<std::int8_t, kChunk>;

// Sixteen random bits for each element of a chunk, from Philox4x32 with seven rounds, which pass BigCrush
// (Salmon et al. 2011). A block gives eight draws: chunk c uses blocks 64 c to 64 c + 63; their first two
// words, block after block, are draws 0 to 255, their last two draws 256 to 511.
void draw(RandomKey key, std::uint64_t chunk, Draws& draws) noexcept;

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

// Two's-complement fields of 2, 4 or 8 bits, the first in the low bits of the first byte. A part of a chunk
// is packed to, or unpacked from, as many bytes as the span has.
void pack(const Levels& levels, int bits, std::span<std::byte> packed) noexcept;
void unpack(std::span<const std::byte> packed, int bits, Levels& levels) noexcept;

// x = unit * level
void dequantize(const std::int8_t* levels, float unit, std::span<float> x) noexcept;

namespace reference {
void draw(RandomKey key, std::uint64_t chunk, Draws& draws) noexcept;
float largest_magnitude(std::span<const float> x) noexcept;
Moments moments(std::span<const float> x, float shift) noexcept;
void quantize(std::span<const float> x, float scale, int steps, const std::uint16_t* draws,
              std::int8_t* levels) noexcept;
void pack(const Levels& levels, int bits, std::span<std::byte> packed) noexcept;
void unpack(std::span<const std::byte> packed, int bits, Levels& levels) noexcept;
void dequantize(const std::int8_t* levels, float unit, std::span<float> x) noexcept;
}  // namespace reference

}  // namespace accordion::kernels
