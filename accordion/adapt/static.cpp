#include "accordion/adapt/static.h"

#include "accordion/adapt/controllers.h"

namespace accordion {
namespace {

class Static final : public Controller {
 public:
  explicit Static(std::size_t layers) : decision_(uniform_decision(layers, 0, "static")) {}

  Needs needs() const override { return {.norms = false}; }

  Decision first() override { return decision_; }
  Decision decide(const Observation&) override { return decision_; }

 private:
  Decision decision_;
};

}  // namespace

std::unique_ptr<Controller> make_static(std::size_t layers) {
  return std::make_unique<Static>(layers);
}

ControllerKind static_controller() {
  return {.name = "static",
          .help = "one codec throughout",
          .levels = TakesLevels::kOne,
          .make = [](const ControlOptions&, std::size_t layers, int) { return make_static(layers); }};
}

}  // namespace accordion
