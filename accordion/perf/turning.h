// Where a verdict turns: the points at which a difference changes its sign.
#pragma once

#include <functional>
#include <vector>

namespace accordion::perf {

struct Range {
  double low, high;
};

// Ascending, each to nine digits. Found by their signs on a grid of equal ratios, then bisected: two turns within
// one cell of the grid, a ratio of about 1.05 on four decades, are not seen.
std::vector<double> turning_points(const std::function<double(double)>& difference, Range range);

// `count` points of equal ratios, ends included.
std::vector<double> log_grid(Range range, int count);

}  // namespace accordion::perf
