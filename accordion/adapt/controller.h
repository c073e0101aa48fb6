// A controller looks at what a window of training left behind and chooses every layer's level, or the batch
// size, for the next one. It is a pure function of what it has been shown: the same observations give the
// same decisions, wherever it runs. A run that goes on after a stop shows it the record.
//
// A level is an index into the run's list of codec settings, 0 the mildest. Controllers never learn what a
// setting is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "accordion/compress/trial.h"

namespace accordion {

// The end of a window: of an epoch, unless the run watches shorter ones.
struct Observation {
  int window = 0;              // Counts from 0.
  double lr = 0, next_lr = 0;  // Of the schedule, where this window begins and where the next one does.
  std::span<const double> norms = {};  // Of each layer: the norm of the window's summed gradient.
  std::int64_t steps = 1;              // That were summed.

  // Only for controllers that ask for them.
  std::span<const double> squares = {};             // Of each layer: the sum of each step's squared norm.
  std::span<const std::vector<Trial>> trials = {};  // Of each layer that can be compressed: one a level.
};

// For the next window.
struct Decision {
  std::vector<int> levels = {};           // One a layer,
  std::vector<std::string> reasons = {};  // and why.
  std::int64_t batch = 0;                 // Samples in a step of all ranks; 0: as the run's options have it.
  std::string batch_reason = {};
};

// One level for all layers, for one reason.
inline Decision uniform_decision(std::size_t layers, int level, const std::string& reason) {
  return {std::vector<int>(layers, level), std::vector<std::string>(layers, reason)};
}

// What a controller looks at, beside learning rates.
struct Needs {
  bool norms = true, squares = false, trials = false;

  bool gradients() const { return norms || squares || trials; }
};

class Controller {
 public:
  virtual ~Controller() = default;

  virtual Needs needs() const { return {}; }

  // Before the first window.
  virtual Decision first() = 0;

  // Called once for each window, in order.
  virtual Decision decide(const Observation& seen) = 0;

  // For bounds of what a run will send. Shown gradients that never change, and levels that lose nothing, so far:
  // whether other gradients might have given the layer this level in place of the one decided on for the next
  // window. Asked only of a controller that looks at gradients.
  virtual bool may_choose(std::size_t /*layer*/, int /*level*/) const { return true; }
};

}  // namespace accordion
