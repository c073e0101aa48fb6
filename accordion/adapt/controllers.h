// Every controller: its rule, and how it is made.
#pragma once

#include <memory>

#include "accordion/adapt/controller.h"
#include "accordion/adapt/detector.h"

namespace accordion {

// One level for the whole run: the mildest, which is then the only one.
std::unique_ptr<Controller> make_static(std::size_t layers);

// The mildest level in critical regimes, the strongest elsewhere.
std::unique_ptr<Controller> make_accordion(const AccordionRule& rule, std::size_t layers, int levels);

// Small batches in critical regimes, large ones from the first time elsewhere: once raised, a batch stays
// large. Looks at the whole model's norm per step, which does not shrink with the number of steps.
struct BatchRange {
  std::int64_t mild = 0, strong = 0;  // Samples in a step of all ranks.
};
std::unique_ptr<Controller> make_accordion_batch(const AccordionRule& rule, const BatchRange& batch,
                                                 std::size_t layers);

// Levels and batch size at once, each by its rule. Norms are per step here: a larger batch sums fewer.
std::unique_ptr<Controller> make_joint(const AccordionRule& rule, const BatchRange& batch, std::size_t layers,
                                       int levels);

// Accordion that finds its own strong level: outside critical regimes a layer takes the strongest level whose
// relative error, of the gradient summed over the last window watched, is within the tolerance.
std::unique_ptr<Controller> make_auto(const AccordionRule& rule, double tolerance, std::size_t layers);

// Levels written down beforehand.
struct Interval {
  int begin, end;  // Windows, the last one not included.
  int level;
};
struct Schedule {
  std::vector<Interval> intervals;  // The first that holds a window counts,
  int otherwise;                    // and where none does, this.
  std::string name = "written schedule";
  std::string unit = "epoch";
};
std::unique_ptr<Controller> make_schedule(const Schedule& schedule, std::size_t layers);

// What another run decided, window by window; its last decision holds for all windows after it.
std::unique_ptr<Controller> make_replay(std::vector<Decision> decisions);

// Starts with the strongest level and moves a layer one step milder when the ratio of its mean gradient to
// the deviation around it has fallen to `threshold` of what it was at the last move. (Guo et al.,
// "Accelerating distributed deep learning by adaptive gradient quantization", 2020.)
std::unique_ptr<Controller> make_adaqs(double threshold, std::size_t layers, int levels);

// Where the schedule divides the learning rate, the batch grows by that factor instead, up to batch.strong.
// The rate follows the batch, so that rate over batch is the schedule's. (Smith et al., "Don't decay the
// learning rate, increase the batch size", 2018.)
std::unique_ptr<Controller> make_smith(const BatchRange& batch, std::size_t layers);

// The mixture of levels that sends least among those whose total squared error is no more than that of one
// level for all layers. (Markov et al., "L-GreCo: Layerwise-adaptive gradient compression", 2024.)
struct LgrecoRule {
  int uniform = 0;         // The level known to be good enough for all.
  int resolution = 10000;  // Steps into which the error budget is cut.
};
std::unique_ptr<Controller> make_lgreco(const LgrecoRule& rule, std::size_t layers);

// The mixture itself: a level a layer, by a dynamic programme over the budget. Layers without trials keep the
// uniform level. Nothing where there is no error to spend, or one that is not finite.
std::vector<int> cheapest_levels(std::span<const std::vector<Trial>> trials, const LgrecoRule& rule);

}  // namespace accordion
