#include "accordion/perf/turning.h"

#include <algorithm>
#include <cmath>

namespace accordion::perf {
namespace {

constexpr int kCells = 200;

bool above(double difference) {
  return difference > 0;
}

double bisected(const std::function<double(double)>& difference, double low, double high) {
  const bool sign = above(difference(low));
  while (high > low * (1 + 1e-9)) {
    const double middle = std::sqrt(low * high);
    (above(difference(middle)) == sign ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

}  // namespace

std::vector<double> log_grid(Range range, int count) {
  std::vector<double> points;
  for (int i = 0; i < count; ++i)
    points.push_back(range.low *
                     std::pow(range.high / range.low, static_cast<double>(i) / std::max(1, count - 1)));
  return points;
}

std::vector<double> turning_points(const std::function<double(double)>& difference, Range range) {
  const std::vector<double> grid = log_grid(range, kCells + 1);
  std::vector<double> turns;
  for (std::size_t i = 1; i < grid.size(); ++i)
    if (above(difference(grid[i - 1])) != above(difference(grid[i])))
      turns.push_back(bisected(difference, grid[i - 1], grid[i]));
  return turns;
}

}  // namespace accordion::perf
