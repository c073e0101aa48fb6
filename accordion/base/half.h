// The two 16-bit formats of floating-point numbers, as types of their own: bits, not arithmetic.
#pragma once

#include <cstdint>

namespace accordion {

enum class Half : std::uint16_t {};      // IEEE binary16: 5 bits of exponent, 10 of fraction.
enum class Bfloat16 : std::uint16_t {};  // The upper half of a binary32: 8 and 7.

}  // namespace accordion
