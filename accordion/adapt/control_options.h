// The options that choose a controller and its levels: the same list for training and for deciding over a
// record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accordion/base/options.h"
#include "accordion/compress/trial.h"

namespace accordion {

// Of all that there are (controllers.h).
std::vector<std::string> controller_names();

struct ControlOptions {
  std::string codec = "none";
  std::string controller = "static";
  std::string mild = "", strong = "", levels = "";
  std::int64_t batch_mild = 0, batch_strong = 0;
  int window = 0;
  int interval = 10;
  double threshold = 0.5, min_decay = 1.5;
  int hold = 0;
  std::string norms = "local";
  double tolerance = 0.3;
  std::string plan = "critical";
  double density = 0.001;
  int uniform = -1;
  int resolution = 10000;
  std::string low_rank_error = "power";
  std::string parity = "none";

  void fields(auto&& field) {
    field("codec", codec, "How gradients travel: name:option=value,...");
    field("controller", controller,
          "Who chooses each layer's level or the batch size: one codec throughout, Accordion, or another.",
          one_of(controller_names()));
    field("mild", mild, "The controller's mild codec setting, for critical regimes.");
    field("strong", strong, "The controller's strong codec setting, for all other times.");
    field("levels", levels, "More than two codec settings, mildest first: A;B;C.");
    field("batch-mild", batch_mild, "Samples in a step of all workers in critical regimes.", at_least(0));
    field("batch-strong", batch_strong,
          "The same at all other times. The learning rate grows with the batch, and is lr at batch-mild.",
          at_least(0));
    field("window", window,
          "Steps that a controller watches before each decision, which counts a decay from the window after "
          "it; 0 for whole epochs.",
          at_least(0));
    field("interval", interval, "Accordion: epochs, or windows, between detections.", at_least(1));
    field("threshold", threshold, "Relative change of a layer's gradient norm that is critical.",
          at_least(0));
    field("min-decay", min_decay, "A learning rate that falls by more than this factor is a decay.",
          at_least(1));
    field("hold", hold, "Epochs, or windows, that a decay is critical; 0 for an interval.", at_least(0));
    field("norms", norms, "Whose gradients are watched: rank 0's own, or the mean that all ranks decode.",
          one_of({"local", "aggregated"}));
    field("tolerance", tolerance, "Auto: relative error of a layer's gradient that a strong level may make.",
          above(0));
    field("plan", plan,
          "Schedule: mild@0-20,mild@150-160,strong (ends not included, the last for all other epochs; levels "
          "also by number); or `critical`, which is that, or `inverse`, with mild and strong exchanged (as "
          "published, with --mild none).");
    field("density", density, "Rethink: the share of entries that a step is expected to send.",
          above(0).up_to(1));
    field("uniform", uniform, "L-GreCo: the level known to be good enough for all; -1 for the middle one.",
          at_least(-1));
    field("resolution", resolution, "L-GreCo: steps into which the error budget is cut.",
          at_least(1).up_to(1e6));
    field("low-rank-error", low_rank_error,
          "PowerSGD's error for L-GreCo and auto: by power steps, or by all singular values.",
          one_of({"power", "svd"}));
    field("parity", parity,
          "`paper` for the published code's behaviour to the letter, where it differs: decays two epochs "
          "after their milestone among it.",
          one_of({"none", "paper"}));
  }

  bool published() const { return parity == "paper"; }
  bool controls_batch() const { return batch_mild > 0; }
  std::string window_unit() const { return window > 0 ? "window" : "epoch"; }
  LowRankError low_rank() const {
    return low_rank_error == "svd" ? LowRankError::kSingularValues : LowRankError::kPowerSteps;
  }
};

}  // namespace accordion
