// A controller looks at what an epoch left behind and chooses every layer's level for the next one. It is a
// pure function of what it has been shown: the same observations give the same decisions, wherever it runs.
//
// A level is an index into the run's list of codec settings, 0 the mildest. Controllers never learn what a
// setting is.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

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

// One level for the whole run: the mildest, which is then the only one.
std::unique_ptr<Controller> make_static(std::size_t layers);

// The mildest level while a layer's gradient norm changes fast (a critical learning regime) and after the
// learning rate falls, the strongest elsewhere. (Agarwal et al., "Accordion: Adaptive Gradient Communication
// via Critical Learning Regime Identification", 2021.)
struct AccordionRule {
  int interval = 10;       // Epochs between detections.
  double threshold = 0.5;  // Relative change of the norm that is critical.
  double min_decay = 1.5;  // A rate that falls by more than this factor turns all layers mild.
  bool published = false;  // Any fall of the rate does, and only until the next detection.
};
std::unique_ptr<Controller> make_accordion(const AccordionRule& rule, std::size_t layers, int levels);

// Levels written down beforehand.
struct Interval {
  int begin, end;  // Epochs, the last one not included.
  int level;
};
struct Schedule {
  std::vector<Interval> intervals;  // The first that holds an epoch counts,
  int otherwise;                    // and where none does, this.
  std::string name = "written schedule";
};
std::unique_ptr<Controller> make_schedule(const Schedule& schedule, std::size_t layers);

}  // namespace accordion
