// Stochastic rounding straight into a message: what draw, quantize and pack do to whole chunks, in registers.
// The bits are theirs, on every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "accordion/kernels/draws.h"

namespace accordion::kernels {

// x has whole chunks, of which the first has number `chunk`, each with a scale that none of its entries
// exceeds, and becomes fields of 2, 4 or 8 bits. A scale of zero gives zeros, whatever x is.
void quantize_packed(RandomKey key, std::uint64_t chunk, std::span<const float> x,
                     std::span<const float> scales, int bits, std::byte* packed) noexcept;

namespace reference {
void quantize_packed(RandomKey key, std::uint64_t chunk, std::span<const float> x,
                     std::span<const float> scales, int bits, std::byte* packed) noexcept;
}  // namespace reference

}  // namespace accordion::kernels
