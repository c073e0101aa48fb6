#include "accordion/kernels/orthonormal.h"

#include <algorithm>
#include <cmath>

namespace accordion::kernels {
namespace {

// What projections leave of a column that depends on earlier ones is rounding: of its entries, which were
// sums in single precision (a few units of 2^-24 of the column, by random walk more for long sums, and more
// again where ranks' parts cancelled), and of the subtractions. Beyond the column's own length such sums err
// by units of 2^-24 of the whole. Taken as noise is what lies below 256 and 16 such units: normalised, it
// would be a direction of no meaning. An honest direction this weak holds less than 1e-9 of the energy, and
// error feedback keeps it until it counts.
constexpr double kNoiseOfColumn = 0x1p-16, kNoiseOfWhole = 0x1p-20;

double dot(std::span<const float> x, std::span<const float> y) noexcept {
  // Four sums, because one chain of additions waits on itself.
  double sums[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= x.size(); i += 4)
    for (std::size_t k = 0; k < 4; ++k) sums[k] += static_cast<double>(x[i + k]) * y[i + k];
  for (; i < x.size(); ++i) sums[0] += static_cast<double>(x[i]) * y[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void subtract_projections(std::span<float> column, std::span<const float> earlier) noexcept {
  for (std::size_t j = 0; j < earlier.size(); j += column.size()) {
    const std::span<const float> direction = earlier.subspan(j, column.size());
    const float along = static_cast<float>(dot(column, direction));
    for (std::size_t i = 0; i < column.size(); ++i) column[i] -= along * direction[i];
  }
}

}  // namespace

double norm(std::span<const float> x) noexcept {
  return std::sqrt(dot(x, x));
}

void normalise(std::span<float> x, double length) noexcept {
  const double factor = 1 / length;
  for (float& value : x) value = static_cast<float>(value * factor);
}

bool orthonormalise(std::span<float> p, std::size_t rows) noexcept {
  const double whole = norm(p);
  if (!(whole > 0) || !std::isfinite(whole)) {
    std::fill(p.begin(), p.end(), 0.0f);
    return whole == 0;
  }
  // Near one, so that neither tiny nor huge gradients lose digits below; by a power of two, so that none are
  // lost here.
  const double scale = std::ldexp(1.0, -std::ilogb(whole));
  for (float& value : p) value = static_cast<float>(value * scale);
  const double negligible = kNoiseOfWhole * whole * scale;

  for (std::size_t j = 0; j < p.size(); j += rows) {
    const std::span<float> column = p.subspan(j, rows);
    const double before = norm(column);
    subtract_projections(column, p.first(j));
    double length = norm(column);
    // What is left of a column that was nearly dependent is mostly rounding, which is not orthogonal to
    // anything yet. With many columns small losses add up.
    if (p.size() > 4 * rows || length < 0.5 * before) {
      subtract_projections(column, p.first(j));
      length = norm(column);
    }
    if (length > std::max(negligible, kNoiseOfColumn * before)) {
      normalise(column, length);
    } else {
      std::fill(column.begin(), column.end(), 0.0f);
    }
  }
  return true;
}

}  // namespace accordion::kernels
