// Accordion's own controllers, which others are made of.
#pragma once

#include <memory>

#include "accordion/adapt/control.h"
#include "accordion/adapt/controller.h"
#include "accordion/adapt/detector.h"

namespace accordion {

AccordionRule accordion_rule(const ControlOptions& options);

// The mildest level in critical regimes, the strongest elsewhere.
std::unique_ptr<Controller> make_accordion(const AccordionRule& rule, std::size_t layers, int levels);

// Small batches in critical regimes, large ones from the first time elsewhere: once raised, a batch stays
// large. Looks at the whole model's norm per step, which does not shrink with the number of steps.
struct BatchRange {
  std::int64_t mild = 0, strong = 0;  // Samples in a step of all ranks.
};
std::unique_ptr<Controller> make_accordion_batch(const AccordionRule& rule, const BatchRange& batch,
                                                 std::size_t layers);

}  // namespace accordion
