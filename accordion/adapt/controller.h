// A controller looks at what an epoch left behind and chooses every layer's level for the next one. It is a
// pure function of what it has been shown: the same observations give the same decisions, wherever it runs.
//
// A level is an index into the run's list of codec settings, 0 the mildest. Controllers never learn what a
// setting is.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accordion/base/options.h"

namespace accordion {

// The end of an epoch. Epochs count from 0.
struct Observation {
  int epoch = 0;
  double lr = 0, next_lr = 0;     // In this epoch and in the next.
  std::span<const double> norms;  // Of each layer: the norm of the epoch's summed gradient.
};

// For the next epoch: one level and one reason a layer.
struct Decision {
  std::vector<int> levels;
  std::vector<std::string> reasons;
};

class Controller {
 public:
  virtual ~Controller() = default;

  // Before the first epoch.
  virtual Decision first() = 0;

  // Called once for each epoch, in order.
  virtual Decision decide(const Observation& observation) = 0;
};

// One setting for the whole run.
struct StaticOptions {
  static constexpr std::string_view kName = "static";
  void fields(auto&&) {}
};

// The mildest level while a layer's gradient norm changes fast (a critical learning regime) and after the
// learning rate falls, the strongest elsewhere. (Agarwal et al., "Accordion: Adaptive Gradient Communication
// via Critical Learning Regime Identification", 2021.)
struct AccordionOptions {
  static constexpr std::string_view kName = "accordion";
  int interval = 10;
  double threshold = 0.5;
  double min_decay = 1.5;
  bool published = false;  // A fall of the rate, however small, holds only until the next detection.
  void fields(auto&& field) {
    field("interval", interval, "Epochs between detections.", at_least(1));
    field("threshold", threshold, "Relative change of a layer's gradient norm that makes a regime critical.",
          at_least(0));
    field("min-decay", min_decay,
          "A learning rate that falls by more than this factor turns all layers mild.", at_least(1));
  }
};

std::unique_ptr<Controller> make_static(std::size_t layers);
std::unique_ptr<Controller> make_accordion(const AccordionOptions& options, std::size_t layers, int levels);

}  // namespace accordion
