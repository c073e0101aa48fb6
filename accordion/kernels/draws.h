// Random bits for stochastic rounding and coin tosses, sixteen an element, the same on every instruction set.
//
// A chunk's bits depend on nothing but the key and the chunk's number. Eight generators, one a vector lane,
// make them: xoroshiro128+ (Blackman and Vigna 2021, shifts 24, 16 and 37), each started from a block of
// Philox4x32 with seven rounds (Salmon et al. 2011), which alone would cost three times as much.
//
// Lane l of chunk c starts with block b = 8 c + l, that is, Philox's counter is (b mod 2^32, b / 2^32, 0, 0)
// and its key (key mod 2^32, key / 2^32): of the block's words, the first two are the state's s0, low word
// first, the last two s1. Each of sixteen steps gives s0 + s1 and then replaces the state:
//
//   x = s0 ^ s1,  s0 = rotl(s0, 24) ^ x ^ (x << 16),  s1 = rotl(x, 37)
//
// Draw 32 t + 4 l + h is bits 16 h to 16 h + 15 of lane l's step t.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "accordion/base/random.h"

namespace accordion::kernels {

inline constexpr std::size_t kChunk = 512;
inline constexpr std::size_t kDrawLanes = 8, kDrawSteps = 16;

using Draws = std::array<std::uint16_t, kChunk>;

void draw(RandomKey key, std::uint64_t chunk, Draws& draws) noexcept;

namespace reference {
void draw(RandomKey key, std::uint64_t chunk, Draws& draws) noexcept;
}  // namespace reference

}  // namespace accordion::kernels
