#include "accordion/report/interval.h"

#include <cassert>
#include <cmath>
#include <numbers>

namespace accordion {
namespace {

// P(|T| < t) of Student's distribution, with angle = atan(t / sqrt(degrees)): a finite sum of powers of the
// cosine (Abramowitz and Stegun 26.7.3 and 26.7.4).
double probability_within(double angle, int degrees) {
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1, sum = 0;
  for (int k = odd ? 1 : 0; k <= degrees - 2; k += 2) {
    sum += term;
    term *= cosine * cosine * (k + 1) / (k + 2);
  }
  return odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

}  // namespace

double student_t95(int degrees) {
  assert(degrees >= 1);
  // In the angle, because t itself has no upper bound to start from.
  double low = 0, high = std::numbers::pi / 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (probability_within(middle, degrees) < 0.95 ? low : high) = middle;
  }
  return std::sqrt(degrees) * std::tan(low);
}

MeanInterval mean_interval(std::span<const double> values) {
  assert(!values.empty());
  const auto n = static_cast<double>(values.size());
  MeanInterval result;
  for (const double value : values) result.mean += value / n;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.normal95 = 1.96 * std::sqrt(squares / n) / std::sqrt(n);
  result.student95 =
      student_t95(static_cast<int>(values.size()) - 1) * std::sqrt(squares / (n - 1)) / std::sqrt(n);
  return result;
}

}  // namespace accordion
