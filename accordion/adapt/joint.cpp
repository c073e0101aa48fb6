#include "accordion/adapt/controllers.h"

namespace accordion {
namespace {

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

 private:
  static Decision both(Decision levels, Decision batch) {
    levels.batch = batch.batch;
    levels.batch_reason = std::move(batch.batch_reason);
    return levels;
  }

  std::unique_ptr<Controller> levels_, batch_;
};

}  // namespace

std::unique_ptr<Controller> make_joint(const AccordionRule& rule, const BatchRange& batch, std::size_t layers,
                                       int levels) {
  return std::make_unique<Joint>(make_accordion(rule, layers, levels),
                                 make_accordion_batch(rule, batch, layers));
}

}  // namespace accordion
