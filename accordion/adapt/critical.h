// The rule that both detectors of critical regimes share: how far a number has moved since it was last looked
// at.
#pragma once

#include <cmath>

namespace accordion {

inline bool comparable(double before, double now) {
  return before != 0 && std::isfinite(before) && std::isfinite(now);
}

// Only of what is comparable.
inline double relative_change(double before, double now) {
  return std::abs(before - now) / std::abs(before);
}

}  // namespace accordion
