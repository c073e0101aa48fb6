// Small signed integers: packing them into a message, and adding up what the ranks' stand for.
//
// Every result is the same on every instruction set: a product is rounded before it is added.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "accordion/kernels/draws.h"

namespace accordion::kernels {

using Levels = std::array<std::int8_t, kChunk>;

// Two's-complement fields of 2, 4 or 8 bits, the first in the low bits of the first byte. A part of a chunk
// is packed to, or unpacked from, as many bytes as the span has.
void pack(const Levels& levels, int bits, std::span<std::byte> packed) noexcept;
void unpack(std::span<const std::byte> packed, int bits, Levels& levels) noexcept;

// One rank's levels.
struct Scaled {
  const std::int8_t* levels;
  float unit;
};

// sum = sum of unit * level, in the order of ranks
void sum_levels(std::span<const Scaled> ranks, std::span<float> sum) noexcept;

// x += unit * level
void add_levels(Scaled rank, std::span<float> x) noexcept;

namespace reference {
void pack(const Levels& levels, int bits, std::span<std::byte> packed) noexcept;
void unpack(std::span<const std::byte> packed, int bits, Levels& levels) noexcept;
void sum_levels(std::span<const Scaled> ranks, std::span<float> sum) noexcept;
void add_levels(Scaled rank, std::span<float> x) noexcept;
}  // namespace reference

}  // namespace accordion::kernels
