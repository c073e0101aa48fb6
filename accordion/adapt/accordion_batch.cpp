#include "accordion/adapt/accordion.h"
#include "accordion/adapt/critical.h"

namespace accordion {
namespace {

class AccordionBatch final : public Controller {
 public:
  // The published counts of data sent have the first batches enlarged after exactly two intervals: detections
  // end an interval rather than begin it.
  AccordionBatch(const AccordionRule& rule, const BatchRange& batch, std::size_t layers)
      : batch_(batch), layers_(layers), detector_(rule, 1, rule.interval - 1) {}

  Decision first() override { return decision(); }

  Decision decide(const Observation& seen) override {
    const double norm = norm_per_step(seen.norms, seen.steps);
    detector_.see(seen.window, seen.lr, seen.next_lr, {&norm, 1});
    const Verdict& verdict = detector_.verdicts()[0];
    if (!raised_) reason_ = verdict.reason;
    raised_ = raised_ || !verdict.critical;
    return decision();
  }

 private:
  Decision decision() const {
    Decision result = uniform_decision(layers_, 0, "static");
    result.batch = raised_ ? batch_.strong : batch_.mild;
    result.batch_reason = reason_;
    return result;
  }

  BatchRange batch_;
  std::size_t layers_;
  Detector detector_;
  bool raised_ = false;
  std::string reason_ = detector_.verdicts()[0].reason;
};

}  // namespace

std::unique_ptr<Controller> make_accordion_batch(const AccordionRule& rule, const BatchRange& batch,
                                                 std::size_t layers) {
  return std::make_unique<AccordionBatch>(rule, batch, layers);
}

}  // namespace accordion
