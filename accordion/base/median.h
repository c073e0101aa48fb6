// Medians of times, with intervals that need no assumption about how times are distributed.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace accordion {

// Median with the 95 % interval that order statistics give.
struct Median {
  double value = 0, low = 0, high = 0;
};

inline Median median_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const auto at = [&](double index) {
    return values[static_cast<std::size_t>(std::clamp(index, 0.0, n - 1))];
  };
  // The number of values below the true median is binomial(n, 1/2): mean n/2, deviation sqrt(n)/2.
  const double reach = 1.96 * std::sqrt(n) / 2;
  return {(at(std::floor((n - 1) / 2)) + at(std::ceil((n - 1) / 2))) / 2, at(std::floor(n / 2 - reach)),
          at(std::ceil(n / 2 + reach) - 1)};
}

}  // namespace accordion
