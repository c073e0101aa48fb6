#include "accordion/adapt/detector_agreement.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "accordion/adapt/critical.h"
#include "accordion/base/options.h"

namespace accordion {

int DetectorAgreement::comparisons() const {
  return static_cast<int>(std::count_if(points.begin(), points.end(), std::mem_fn(&DecisionPoint::compared)));
}

int DetectorAgreement::agreements() const {
  return static_cast<int>(std::count_if(points.begin(), points.end(), [](const DecisionPoint& point) {
    return point.compared() && point.agrees();
  }));
}

DetectorAgreement compare_detectors(std::span<const double> norms, std::span<const double> eigenvalues,
                                    int interval, double threshold) {
  check_number("detectors", "interval", interval, at_least(1));
  check_number("detectors", "threshold", threshold, at_least(0));
  if (norms.size() != eigenvalues.size())
    throw UsageError("detectors: " + std::to_string(norms.size()) + " norms and " +
                     std::to_string(eigenvalues.size()) + " eigenvalues, expected one of each per epoch");

  const auto change = [](double before, double now) {
    return comparable(before, now) ? std::optional(relative_change(before, now)) : std::nullopt;
  };
  const auto critical = [&](std::optional<double> moved) { return !moved || *moved >= threshold; };
  DetectorAgreement result;
  double norm_before = 0, eigenvalue_before = 0;  // With nothing, nothing is comparable.
  for (std::size_t e = 0; e < norms.size(); e += static_cast<std::size_t>(interval)) {
    const auto norm_change = change(std::exchange(norm_before, norms[e]), norms[e]);
    const auto eigenvalue_change = change(std::exchange(eigenvalue_before, eigenvalues[e]), eigenvalues[e]);
    result.points.push_back({.epoch = static_cast<int>(e),
                             .norm_change = norm_change,
                             .eigenvalue_change = eigenvalue_change,
                             .norm_critical = critical(norm_change),
                             .eigenvalue_critical = critical(eigenvalue_change)});
  }
  return result;
}

}  // namespace accordion
