// Takes what a window of steps left behind to the controller, and its decision to all ranks: message sizes
// follow levels, so all must agree. Keeps for the record what was decided and why.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "accordion/adapt/control.h"
#include "accordion/comm/communicator.h"
#include "accordion/engine/guard.h"
#include "accordion/exchange/exchange.h"
#include "accordion/log/epoch_record.h"

namespace accordion {

class Steering {
 public:
  // Applies the controller's first decision. Rank 0 decides; the others have no controller. `rate` is the
  // schedule's at the first step; NaN where it is not known, and then the first window's end is no decay.
  // A guard has the last word on levels; null: the controller's hold.
  Steering(int window_steps, std::vector<CodecOptions> levels, std::unique_ptr<Controller> controller,
           Exchange& exchange, Guard* guard, Communicator& control, double rate);

  // Samples in a step of all ranks, from the next epoch on; 0: as the run's options have it.
  std::int64_t batch() const { return batch_; }
  const std::string& batch_reason() const { return batch_reason_; }

  // After every step, and after an epoch's last one. `next_rate` is the schedule's at the next step. Nothing
  // is decided where there is none.
  void end_step(double next_rate, bool last);
  void end_epoch(double next_rate, bool last);

  // Rank 0's: the layers in the last window that has ended, and the windows since the last call, where
  // windows are not epochs.
  const std::vector<LayerRecord>& layers() const { return layers_; }
  std::vector<WindowRecord> take_windows() { return std::exchange(windows_, {}); }

  // Everything that the next decision depends on. A controller is a pure function of what it has been shown, so that is
  // what is kept of it. Loaded before anything has been decided but the first levels, by each rank for itself; then all ranks
  // together put the loaded levels in force.
  void save_state(const StateWriter& state) const;
  void load_state(const StateReader& state);
  void put_loaded_levels() { set_levels(decided_); }

  // Of decisions, since the last call.
  std::uint64_t take_control_bytes() { return std::exchange(control_bytes_, 0); }

 private:
  // What the controller was shown at the end of one.
  struct Window {
    double rate, next_rate;
    WindowStats stats;
  };

  Decision decide(Window window);
  void end_window(double next_rate, bool last);
  void describe_layers(const WindowStats& stats);
  void apply(Decision decision);
  void set_levels(std::span<const int> levels);

  int window_steps_;  // 0: a window is an epoch.
  std::vector<CodecOptions> levels_;
  std::unique_ptr<Controller> controller_;
  Exchange& exchange_;
  Guard* guard_;
  Communicator& control_;
  std::vector<Window> seen_;  // By the controller, from the first on.
  int window_ = 0;
  int steps_ = 0;  // In this window.
  double rate_;    // The schedule's at its first step.
  std::int64_t batch_ = 0;
  std::string batch_reason_;
  std::vector<int> decided_;          // Levels, for the windows to come,
  std::vector<std::string> reasons_;  // and why.
  std::vector<LayerRecord> layers_;
  std::vector<WindowRecord> windows_;
  std::uint64_t control_bytes_ = 0;
};

}  // namespace accordion
