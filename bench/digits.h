// Measured numbers have no more digits than they deserve.
#pragma once

#include <cmath>

namespace accordion::bench {

inline double digits(double value, int count = 5) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - (count - 1));
  // Dividing by a power of ten above 1 keeps the result the nearest to its decimal form.
  return unit >= 1 ? std::round(value / unit) * unit : std::round(value / unit) / std::round(1 / unit);
}

}  // namespace accordion::bench
