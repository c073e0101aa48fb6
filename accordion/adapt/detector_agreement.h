// Two detectors of critical regimes side by side: the norm of the whole model's gradient, which costs
// nothing, and the largest eigenvalue of the loss's Hessian, which the norm is meant to stand in for.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace accordion {

// What both said at the end of an epoch. A change is empty where there was nothing to compare with; the
// detector then calls the epoch critical.
struct DecisionPoint {
  int epoch = 0;
  std::optional<double> norm_change, eigenvalue_change;
  bool norm_critical = true, eigenvalue_critical = true;

  bool compared() const { return norm_change && eigenvalue_change; }
  bool agrees() const { return norm_critical == eigenvalue_critical; }
};

struct DetectorAgreement {
  std::vector<DecisionPoint> points;

  // Points where both compared, and those of them where they agree: the first is critical by definition and
  // says nothing.
  int comparisons() const;
  int agreements() const;
};

// Both values of every epoch, from epoch 0 on; those of epochs that no detection falls on are not read.
DetectorAgreement compare_detectors(std::span<const double> norms, std::span<const double> eigenvalues,
                                    int interval, double threshold);

}  // namespace accordion
