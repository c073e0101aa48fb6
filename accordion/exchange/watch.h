// What a controller wants to know of a window of steps: each tensor's summed gradient, and what follows from
// it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "accordion/compress/trial.h"
#include "accordion/exchange/layer.h"

namespace accordion {

struct Tracking {
  bool norms = false;    // Costs one addition an element; only the rank that decides needs it.
  bool squares = false;  // Each step's squared norm: one more pass.
  bool trials = false;   // What each level would lose and cost, at the window's end.
  LowRankError low_rank = LowRankError::kPowerSteps;
  bool aggregated = false;  // Of the mean that all ranks decode, rather than of this rank's raw gradients.
};

struct WindowStats {
  std::int64_t steps = 0;
  std::vector<double> norms = {};               // Per tensor, of the summed gradient. Empty unless tracked,
  std::vector<double> squares = {};             // as are the sums of each step's squared norm,
  std::vector<std::vector<Trial>> trials = {};  // and what each level would do to the summed gradient.
};

class Watch {
 public:
  Watch(const Tracking& tracking, std::span<const Layer> layers);

  const Tracking& tracking() const { return tracking_; }

  void add(int tensor, std::span<const float> gradient);
  void add(int tensor, std::span<const double> gradient);
  // Of several steps.
  void add_sum(std::size_t tensor, std::span<const float> sum, double squares);
  void end_step() { ++steps_; }

  // The window's end; the next one starts from nothing.
  WindowStats take(std::span<const Layer> layers, std::span<const CodecOptions> levels, int world,
                   const Routing& routing);

  // A window that has begun; of one that has not, little. A state without a window is that of an empty one, and a window is
  // passed over by who does not watch.
  void save_state(const StateWriter& state, std::span<const Layer> layers) const;
  void load_state(const StateReader& state, std::span<const Layer> layers);

 private:
  void clear();

  Tracking tracking_;
  std::int64_t steps_ = 0;
  std::vector<std::vector<float>> sums_;
  std::vector<double> squares_;
};

}  // namespace accordion
