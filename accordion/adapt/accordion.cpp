#include "accordion/adapt/accordion.h"

namespace accordion {
namespace {

class Accordion final : public Controller {
 public:
  Accordion(const AccordionRule& rule, std::size_t layers, int levels)
      : strong_(levels - 1), detector_(rule, layers) {}

  Decision first() override { return decision(); }

  Decision decide(const Observation& seen) override {
    detector_.see(seen.window, seen.lr, seen.next_lr, seen.norms);
    return decision();
  }

  bool may_choose(std::size_t, int level) const override { return level == 0; }

 private:
  Decision decision() const {
    Decision result;
    for (const Verdict& verdict : detector_.verdicts()) {
      result.levels.push_back(verdict.critical ? 0 : strong_);
      result.reasons.push_back(verdict.reason);
    }
    return result;
  }

  int strong_;
  Detector detector_;
};

}  // namespace

AccordionRule accordion_rule(const ControlOptions& options) {
  return {.interval = options.interval,
          .threshold = options.threshold,
          .min_decay = options.min_decay,
          .hold = options.hold,
          .published = options.published(),
          .unit = options.window_unit()};
}

std::unique_ptr<Controller> make_accordion(const AccordionRule& rule, std::size_t layers, int levels) {
  return std::make_unique<Accordion>(rule, layers, levels);
}

ControllerKind accordion_controller() {
  return {.name = "accordion",
          .help = "mild, or small batches, in critical regimes; strong, or large ones, elsewhere",
          .levels = TakesLevels::kBetween,
          .batch = SetsBatch::kInstead,
          .make = [](const ControlOptions& options, std::size_t layers, int levels) {
            const AccordionRule rule = accordion_rule(options);
            return options.controls_batch()
                       ? make_accordion_batch(rule, {options.batch_mild, options.batch_strong}, layers)
                       : make_accordion(rule, layers, levels);
          }};
}

}  // namespace accordion
