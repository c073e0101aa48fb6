#include "accordion/adapt/controllers.h"

namespace accordion {
namespace {

class Static final : public Controller {
 public:
  explicit Static(std::size_t layers) : decision_(uniform_decision(layers, 0, "static")) {}

  Decision first() override { return decision_; }
  Decision decide(const Observation&) override { return decision_; }

 private:
  Decision decision_;
};

}  // namespace

std::unique_ptr<Controller> make_static(std::size_t layers) {
  return std::make_unique<Static>(layers);
}

}  // namespace accordion
