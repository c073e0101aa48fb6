#include "accordion/engine/step_pairs.h"

#include <algorithm>
#include <cmath>

#include "accordion/base/median.h"

namespace accordion {
namespace {

constexpr std::size_t kKept = 150;

}  // namespace

void StepPairs::add(double seconds, double dense_seconds) {
  if (!(seconds > 0) || !(dense_seconds > 0)) return;
  if (logs_.size() == kKept) logs_.erase(logs_.begin());
  logs_.push_back(std::log(seconds / dense_seconds));
}

Longer StepPairs::longer() const {
  Longer longer;
  if (logs_.empty()) return longer;
  std::vector<double> means;
  for (std::size_t i = 0; i < logs_.size(); ++i)
    for (std::size_t k = i; k < logs_.size(); ++k) means.push_back((logs_[i] + logs_[k]) / 2);
  std::sort(means.begin(), means.end());
  longer.value = std::exp(median_of(means).value);
  if (logs_.size() < kEnough) return longer;
  // The number of such means below the true median has n(n+1)/4 as its mean, and n(n+1)(2n+1)/24 as its variance.
  const auto n = static_cast<double>(logs_.size());
  const double reach = 1.96 * std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
  const auto outside = static_cast<std::size_t>(std::max(1.0, std::floor(n * (n + 1) / 4 - reach)));
  longer.low = std::exp(means[outside - 1]);
  longer.high = std::exp(means[means.size() - outside]);
  return longer;
}

}  // namespace accordion
