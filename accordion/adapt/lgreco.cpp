#include "accordion/adapt/lgreco.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "accordion/adapt/control.h"
#include "accordion/adapt/detector.h"

namespace accordion {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double total(std::span<const std::vector<Trial>> trials, std::span<const int> levels, double Trial::*what) {
  double sum = 0;
  for (std::size_t i = 0; i < trials.size(); ++i)
    if (!trials[i].empty()) sum += trials[i][static_cast<std::size_t>(levels[i])].*what;
  return sum;
}

class Lgreco final : public Controller {
 public:
  Lgreco(const LgrecoRule& rule, std::size_t layers)
      : rule_(rule),
        now_(uniform_decision(layers, rule.uniform, "the uniform level, until errors are known")),
        uniform_(now_.levels) {}

  Needs needs() const override { return {.trials = true}; }

  Decision first() override { return now_; }

  Decision decide(const Observation& seen) override {
    if (seen.next_lr > seen.lr) return now_;  // Warm-up: what is seen now is soon out of date.
    warm_ = true;
    const std::vector<int> levels = cheapest_levels(seen.trials, rule_);
    if (levels.empty()) return now_;
    const double sent =
        total(seen.trials, levels, &Trial::bytes) / total(seen.trials, uniform_, &Trial::bytes);
    const double lost =
        total(seen.trials, levels, &Trial::error) / total(seen.trials, uniform_, &Trial::error);
    now_.levels = levels;
    now_.reasons.assign(levels.size(), "all layers together send " + percent_text(sent) +
                                           " of the uniform level's bytes at " + percent_text(lost) +
                                           " of its error");
    return now_;
  }

  bool may_choose(std::size_t, int) const override { return warm_; }

 private:
  LgrecoRule rule_;
  Decision now_;
  bool warm_ = false;  // Errors have been looked at.
  std::vector<int> uniform_;
};

}  // namespace

std::vector<int> cheapest_levels(std::span<const std::vector<Trial>> trials, const LgrecoRule& rule) {
  std::vector<int> levels(trials.size(), rule.uniform);
  const double budget = total(trials, levels, &Trial::error);
  if (!(budget > 0) || !std::isfinite(budget)) return {};

  const auto columns = static_cast<std::size_t>(rule.resolution) + 1;
  // least[x]: the fewest bytes of the layers so far with at most x steps of the budget spent.
  std::vector<double> least(columns, 0), next(columns);
  std::vector<std::vector<std::int16_t>> chosen(trials.size());
  const auto steps = [&](std::size_t layer, std::size_t level) {
    const double share = trials[layer][level].error * rule.resolution / budget;
    // Rounded up, so that the budget holds; but the uniform level must always fit.
    const double whole = static_cast<int>(level) == rule.uniform ? std::floor(share) : std::ceil(share);
    return whole <= rule.resolution ? static_cast<std::size_t>(whole) : columns;
  };
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].empty()) continue;
    std::fill(next.begin(), next.end(), kNever);
    chosen[i].assign(columns, -1);
    for (std::size_t level = 0; level < trials[i].size(); ++level) {
      if (!std::isfinite(trials[i][level].error)) continue;
      const double bytes = trials[i][level].bytes;
      for (std::size_t x = steps(i, level), from = 0; x < columns; ++x, ++from)
        if (least[from] + bytes < next[x]) {
          next[x] = least[from] + bytes;
          chosen[i][x] = static_cast<std::int16_t>(level);
        }
    }
    std::swap(least, next);
  }
  auto x = static_cast<std::size_t>(std::min_element(least.begin(), least.end()) - least.begin());
  for (std::size_t i = trials.size(); i-- > 0;) {
    if (trials[i].empty()) continue;
    const auto level = static_cast<std::size_t>(chosen[i][x]);
    levels[i] = static_cast<int>(level);
    x -= steps(i, level);
  }
  return levels;
}

ControllerKind lgreco_controller() {
  return {.name = "lgreco",
          .help = "the cheapest mixture with no more squared error than one level for all",
          .levels = TakesLevels::kLadder,
          .make = [](const ControlOptions& options, std::size_t layers, int levels) {
            if (options.uniform >= levels)
              throw UsageError("uniform=" + std::to_string(options.uniform) +
                               ", expected a level from 0 to " + std::to_string(levels - 1));
            const int uniform = options.uniform < 0 ? levels / 2 : options.uniform;
            return std::make_unique<Lgreco>(LgrecoRule{uniform, options.resolution}, layers);
          }};
}

}  // namespace accordion
