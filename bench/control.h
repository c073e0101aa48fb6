// What adaptive control costs a training step on the rank that decides: watching gradients in every step, and
// deciding once an epoch.
#pragma once

#include <string>

#include "accordion/base/json_fwd.h"

namespace accordion::bench {

struct ControlBenchOptions {
  std::string model = "resnet18";
  int batch = 32;            // Samples in a step.
  int steps_per_epoch = 98;  // Over which a decision is spread: those of CIFAR-10 with 4 ranks of 128.
  int repetitions = 7;
};

struct ControlTiming {
  std::size_t parameters;
  double step_ms;    // Forward, backward and optimizer, one thread, nothing exchanged.
  double watch_ms;   // A step's addition to the window's sums.
  double decide_ms;  // Once an epoch: the norms, and the controller.
  int steps_per_epoch;

  double share() const { return (watch_ms + decide_ms / steps_per_epoch) / step_ms; }
};

// Throws Error when the norms are not those of a plain sum.
ControlTiming time_control(const ControlBenchOptions& options);

Json to_json(const ControlBenchOptions& options, const ControlTiming& timing);

}  // namespace accordion::bench
