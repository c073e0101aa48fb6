#include "accordion/adapt/power_iteration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "accordion/base/options.h"

namespace accordion {
namespace {

// In double and in order: the same bits on every rank, whatever vectors its processor has.
double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

void scale(std::span<float> v, double factor) {
  for (float& x : v) x = static_cast<float>(x * factor);
}

// Where an iteration ended: the Rayleigh quotient of `v`, and the length of the last product.
struct End {
  EigenvalueEstimate estimate;
  double length = 0;
};

// Power iteration on the matrix plus `shift` times the identity; the estimate is the matrix's own.
End iterate(const Multiply& multiply, std::span<float> v, std::span<float> product, double shift,
            const PowerIterationOptions& options) {
  // What float products leave of an eigenvalue near zero beside a large shift.
  const double noise = 1e-3 * shift;
  End end;
  auto& [value, iterations, converged] = end.estimate;
  while (iterations < options.iterations && !converged) {
    multiply(v, product);
    ++iterations;
    const double before = std::exchange(value, dot(v, product));
    end.length = std::sqrt(dot(product, product));
    if (!std::isfinite(end.length)) {
      value = std::numeric_limits<double>::quiet_NaN();
      break;  // `v` remains as it was, to start again from.
    }
    converged =
        iterations > 1 && std::abs(value - before) <= options.tolerance * std::max(std::abs(value), noise);

    if (shift != 0)
      for (std::size_t i = 0; i < v.size(); ++i) product[i] += static_cast<float>(shift * v[i]);
    const double length = std::sqrt(dot(product, product));
    if (length == 0) {
      converged = true;  // `v` is an eigenvector: of zero, or of -shift.
    } else {
      std::copy(product.begin(), product.end(), v.begin());
      scale(v, 1 / length);
    }
  }
  return end;
}

}  // namespace

EigenvalueEstimate top_eigenvalue(const Multiply& multiply, std::span<float> v,
                                  const PowerIterationOptions& options) {
  check_number("power iteration", "iterations", options.iterations, at_least(1));
  check_number("power iteration", "tolerance", options.tolerance, above(0));
  const double length = std::sqrt(dot(v, v));
  if (!(length > 0) || !std::isfinite(length))
    throw UsageError("power iteration: a start of length " + number_text(length) +
                     ", expected a finite one above 0");
  scale(v, 1 / length);
  const std::vector<float> start(v.begin(), v.end());
  std::vector<float> product(v.size());

  const End plain = iterate(multiply, v, product, 0, options);
  // Without negative eigenvalues, an iteration that has settled has a Rayleigh quotient just below the
  // product's length: their squares differ by a fraction of about the tolerance. If they are further apart, a
  // negative eigenvalue of about that length, or larger, leads or is mixed in.
  const bool leads = plain.length <= (1 + 10 * options.tolerance) * plain.estimate.value;
  if (leads || std::isnan(plain.estimate.value)) return plain.estimate;

  // Shifted by it, no eigenvalue is below zero and the largest leads. `v` has by now lost its eigenvector.
  std::copy(start.begin(), start.end(), v.begin());
  EigenvalueEstimate shifted = iterate(multiply, v, product, plain.length, options).estimate;
  shifted.iterations += plain.estimate.iterations;
  return shifted;
}

}  // namespace accordion
