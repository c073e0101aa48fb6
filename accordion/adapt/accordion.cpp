#include "accordion/adapt/controllers.h"

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

std::unique_ptr<Controller> make_accordion(const AccordionRule& rule, std::size_t layers, int levels) {
  return std::make_unique<Accordion>(rule, layers, levels);
}

}  // namespace accordion
