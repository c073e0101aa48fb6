// The rule that both detectors of critical regimes share: how far a number has moved since it was last looked
// at.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

namespace accordion {

inline bool comparable(double before, double now) {
  return before != 0 && std::isfinite(before) && std::isfinite(now);
}

// Only of what is comparable.
inline double relative_change(double before, double now) {
  return std::abs(before - now) / std::abs(before);
}

// Of the whole model, from its layers' norms of gradients summed over so many steps: fewer steps sum to less
// without anything having happened to the gradients.
inline double norm_per_step(std::span<const double> norms, std::int64_t steps) {
  double squares = 0;
  for (const double norm : norms) squares += norm * norm;
  return std::sqrt(squares) / static_cast<double>(steps > 0 ? steps : 1);
}

}  // namespace accordion
