#include <cmath>

#include "accordion/adapt/accordion.h"

namespace accordion {
namespace {

// Accordion that finds its own strong level: outside critical regimes a layer takes the strongest level whose
// relative error, of the gradient summed over the last window watched, is within the tolerance.
class Auto final : public Controller {
 public:
  Auto(const AccordionRule& rule, double tolerance, std::size_t layers)
      : tolerance_(tolerance), detector_(rule, layers), affordable_(layers, {0, ""}) {}

  Needs needs() const override { return {.trials = true}; }

  Decision first() override { return decision(); }

  Decision decide(const Observation& seen) override {
    if (detector_.see(seen.window, seen.lr, seen.next_lr, seen.norms))
      for (std::size_t i = 0; i < affordable_.size(); ++i)
        affordable_[i] = strongest(seen.trials[i], seen.norms[i]);
    return decision();
  }

  // What is critical although nothing changes is critical whatever happens.
  bool may_choose(std::size_t layer, int) const override { return !detector_.verdicts()[layer].critical; }

 private:
  struct Affordable {
    int level;
    std::string reason;
  };

  Affordable strongest(std::span<const Trial> trials, double norm) const {
    const auto loses = [&](const Trial& trial) { return std::sqrt(trial.error) / norm; };
    const std::string within = ", tolerance " + percent_text(tolerance_);
    for (std::size_t level = trials.size(); level-- > 1;)
      if (const double lost = loses(trials[level]); lost <= tolerance_)
        return {static_cast<int>(level), "loses " + percent_text(lost) + within};
    if (trials.empty()) return {0, "not worth compressing"};
    if (trials.size() > 1 && std::isfinite(loses(trials[1])))
      return {0, "the next level would lose " + percent_text(loses(trials[1])) + within};
    return {0, "no error could be measured"};
  }

  Decision decision() const {
    Decision result;
    for (std::size_t i = 0; i < affordable_.size(); ++i) {
      const Verdict& verdict = detector_.verdicts()[i];
      result.levels.push_back(verdict.critical ? 0 : affordable_[i].level);
      result.reasons.push_back(verdict.critical ? verdict.reason
                                                : verdict.reason + "; " + affordable_[i].reason);
    }
    return result;
  }

  double tolerance_;
  Detector detector_;
  std::vector<Affordable> affordable_;  // As of the last detection.
};

}  // namespace

ControllerKind auto_controller() {
  return {.name = "auto",
          .help = "Accordion that finds its strong level: the strongest within a tolerance",
          .levels = TakesLevels::kFamily,
          .make = [](const ControlOptions& options, std::size_t layers, int) {
            return std::make_unique<Auto>(accordion_rule(options), options.tolerance, layers);
          }};
}

}  // namespace accordion
