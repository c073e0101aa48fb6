#include "accordion/adapt/accordion.h"

namespace accordion {
namespace {

// Levels and batch size at once, each by its rule. Norms are per step here: a larger batch sums fewer.
class Joint final : public Controller {
 public:
  Joint(std::unique_ptr<Controller> levels, std::unique_ptr<Controller> batch)
      : levels_(std::move(levels)), batch_(std::move(batch)) {}

  Decision first() override { return both(levels_->first(), batch_->first()); }

  Decision decide(const Observation& seen) override {
    std::vector<double> norms(seen.norms.begin(), seen.norms.end());
    for (double& norm : norms) norm /= static_cast<double>(seen.steps);
    Observation per_step = seen;
    per_step.norms = norms;
    return both(levels_->decide(per_step), batch_->decide(seen));
  }

  bool may_choose(std::size_t layer, int level) const override { return levels_->may_choose(layer, level); }

 private:
  static Decision both(Decision levels, Decision batch) {
    levels.batch = batch.batch;
    levels.batch_reason = std::move(batch.batch_reason);
    return levels;
  }

  std::unique_ptr<Controller> levels_, batch_;
};

}  // namespace

ControllerKind joint_controller() {
  return {.name = "joint",
          .help = "Accordion for levels and batch sizes at once",
          .levels = TakesLevels::kBetween,
          .batch = SetsBatch::kAlways,
          .make = [](const ControlOptions& options, std::size_t layers, int levels) {
            const AccordionRule rule = accordion_rule(options);
            return std::make_unique<Joint>(
                make_accordion(rule, layers, levels),
                make_accordion_batch(rule, {options.batch_mild, options.batch_strong}, layers));
          }};
}

}  // namespace accordion
