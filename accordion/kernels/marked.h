// Taking and putting the entries of a gradient that a bit map marks: bit i % 64 of word i / 64 stands for
// entry i. `reference` holds the plain loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "accordion/base/random.h"

namespace accordion::kernels {

// Marks each of n entries with probability heads / 2^16, and returns how many. Of a chunk's draws (draws.h),
// taken as words of 64 bits, word 8 t + w has the t-th bit, from the lowest, of the 64 numbers for marks w:
// an entry is marked if its number is below `heads`.
std::size_t toss(RandomKey key, std::uint16_t heads, std::size_t n, std::span<std::uint64_t> marks) noexcept;

// Copies the marked entries of a = gradient + residual to `values`, in order, and writes next: a where
// unmarked, zero where marked. Residual and next may both be empty: then a is the gradient and only `values`
// is written. No bit is set beyond the last entry. Returns whether all of a is finite.
bool take_marked(std::span<const std::uint64_t> marks, std::span<const float> gradient,
                 std::span<const float> residual, std::span<float> next, float* values) noexcept;

// out = values * factor where marked, zero elsewhere.
void put_marked(std::span<const std::uint64_t> marks, const float* values, double factor,
                std::span<float> out) noexcept;

namespace reference {
std::size_t toss(RandomKey key, std::uint16_t heads, std::size_t n, std::span<std::uint64_t> marks) noexcept;
bool take_marked(std::span<const std::uint64_t> marks, std::span<const float> gradient,
                 std::span<const float> residual, std::span<float> next, float* values) noexcept;
void put_marked(std::span<const std::uint64_t> marks, const float* values, double factor,
                std::span<float> out) noexcept;
}  // namespace reference

}  // namespace accordion::kernels
