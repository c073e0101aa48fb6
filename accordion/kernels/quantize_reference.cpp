#include <algorithm>
#include <bit>
#include <cmath>

#include "accordion/kernels/quantize.h"

namespace accordion::kernels::reference {

void draw(RandomKey key, std::uint64_t chunk, Draws& draws) noexcept {
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint64_t block = 64 * chunk + i;
    const auto words = r123::Philox4x32_R<7>()(
        {{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0}},
        {{static_cast<std::uint32_t>(key.value), static_cast<std::uint32_t>(key.value >> 32)}});
    for (std::size_t half = 0; half < 8; ++half)
      draws[256 * (half / 4) + 4 * i + half % 4] =
          static_cast<std::uint16_t>(words[half / 2] >> (half % 2 == 0 ? 0 : 16));
  }
}

// Bits of magnitudes compare like the magnitudes, and infinity and NaN come last.
float largest_magnitude(std::span<const float> x) noexcept {
  std::uint32_t largest = 0;
  for (float value : x) largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7fffffff);
  return std::bit_cast<float>(largest);
}

Moments moments(std::span<const float> x, float shift) noexcept {
  double sums[8] = {}, squares[8] = {};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float difference = x[i] - shift;
    sums[i % 8] += difference;
    squares[i % 8] += static_cast<double>(difference) * difference;
  }
  const auto total = [](const double* s) {
    return ((s[0] + s[2]) + (s[4] + s[6])) + ((s[1] + s[3]) + (s[5] + s[7]));
  };
  return {total(sums), total(squares), largest_magnitude(x)};
}

void quantize(std::span<const float> x, float scale, int steps, const std::uint16_t* draws,
              std::int8_t* levels) noexcept {
  const int bits = distance_bits(steps);
  const float lift = scale > 0 && scale < 0x1p-64f ? 0x1p64f : 1.0f;
  const float most = std::ldexp(static_cast<float>(steps), bits);
  const float factor = scale > 0 ? static_cast<float>(static_cast<double>(most) / (scale * lift)) : 0.0f;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto fixed =
        static_cast<std::int32_t>(std::nearbyint(std::clamp(x[i] * lift * factor, -most, most)));
    levels[i] = static_cast<std::int8_t>((fixed + (draws[i] >> (16 - bits))) >> bits);
  }
}

void pack(const Levels& levels, int bits, std::span<std::byte> packed) noexcept {
  std::fill(packed.begin(), packed.end(), std::byte{0});
  for (std::size_t i = 0; i < packed.size() * 8 / bits; ++i)
    packed[i * bits / 8] |= static_cast<std::byte>((levels[i] & ((1 << bits) - 1)) << (i * bits % 8));
}

void unpack(std::span<const std::byte> packed, int bits, Levels& levels) noexcept {
  for (std::size_t i = 0; i < packed.size() * 8 / bits; ++i) {
    const int field = std::to_integer<int>(packed[i * bits / 8]) >> (i * bits % 8) & ((1 << bits) - 1);
    const int sign = 1 << (bits - 1);
    levels[i] = static_cast<std::int8_t>((field ^ sign) - sign);
  }
}

void dequantize(const std::int8_t* levels, float unit, std::span<float> x) noexcept {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = unit * static_cast<float>(levels[i]);
}

}  // namespace accordion::kernels::reference
