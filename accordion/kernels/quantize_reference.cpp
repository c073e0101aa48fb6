#include <algorithm>
#include <bit>
#include <cmath>

#include "accordion/kernels/quantize.h"

namespace accordion::kernels::reference {

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
  const float lift = scale > 0 && scale < kLiftBelow ? kLiftBy : 1.0f;
  const float most = std::ldexp(static_cast<float>(steps), bits);
  const float factor = scale > 0 ? static_cast<float>(static_cast<double>(most) / (scale * lift)) : 0.0f;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto fixed =
        static_cast<std::int32_t>(std::nearbyint(std::clamp(x[i] * lift * factor, -most, most)));
    levels[i] = static_cast<std::int8_t>((fixed + (draws[i] >> (16 - bits))) >> bits);
  }
}

}  // namespace accordion::kernels::reference
