// How much longer steps of one kind are than dense ones, from pairs of neighbours: what drifts, and what slows the machine for a
// while, is in both of a pair.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace accordion {

// Times as long as a dense step, with the 95 % interval; without one where pairs are too few to tell.
struct Longer {
  double value = 1, low = 0, high = std::numeric_limits<double>::infinity();
};

class StepPairs {
 public:
  static constexpr std::size_t kEnough = 6;  // For an interval.

  void add(double seconds, double dense_seconds);
  std::size_t count() const { return logs_.size(); }

  // The median of all means of two pairs, and Wilcoxon's interval of it: noise need not be normal, only alike on both sides.
  Longer longer() const;

 private:
  std::vector<double> logs_;  // Of ratios; the last ones.
};

}  // namespace accordion
