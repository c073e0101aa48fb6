// What every caller drives: named tensors and a group in, means out, and levels that adapt. It holds the
// exchange, the threads that call it, and the controller with its way to all ranks. It sees host memory only;
// futures, devices and autograd are the caller's matter.
//
//   Engine engine(group, tensors, {.control = {.controller = "accordion", .mild = ..., .strong = ...}});
//   each step:   engine.post(bucket, done), for every bucket, in the same order on every rank
//   each epoch:  engine.end_epoch(next_learning_rate)
//
// Between steps it is called from one thread, the training thread's. The calls that are marked collective are
// made by all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/comm/group.h"
#include "accordion/compress/tensor.h"
#include "accordion/engine/communication_thread.h"
#include "accordion/engine/epoch_report.h"
#include "accordion/engine/explained_step.h"
#include "accordion/engine/guard.h"
#include "accordion/engine/guard_mode.h"
#include "accordion/engine/guard_profile.h"
#include "accordion/engine/steering.h"
#include "accordion/engine/step_splits.h"

namespace accordion {

struct EngineOptions {
  // One codec throughout, or a controller and its levels.
  ControlOptions control = {};
  // Who sees to it that it pays; by what, where that must be known beforehand (guard_mode.h); or the changes that the guard of
  // another run made, to be made again.
  GuardMode guard = GuardMode::kNone;
  GuardProfile profile = {};
  std::vector<GuardEvent> replayed_guard = {};
  // When gradients travel, and what becomes of a step with values that are not finite.
  CommunicationOptions communication = {};
  // The learning rate of the first step, for controllers that heed its falls; NaN where it is not known: then
  // the end of the first epoch is none.
  double learning_rate = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t seed = 0;
  // Which tensors are worth compressing.
  Routing routing = {};
  // Layers are encoded and decoded side by side.
  int threads = 1;
  // Keep norms of summed gradients for the record even if the controller needs none. Costs an addition an
  // element, on rank 0.
  bool record_norms = false;
  // Losses are scaled: steps that are not finite are to be expected, and norms must not be lost to them.
  bool scaled = false;
};

// A rank was given what is not a state of this engine; thrown on every rank. The engine is of no use afterwards.
struct StateRefused : Error {
  using Error::Error;
};
// Or another rank's.
struct StateOfAnotherRank : StateRefused {
  using StateRefused::StateRefused;
};

class Engine {
 public:
  // Collective: throws an Error on every rank when the ranks' tensors or options differ, and a UsageError for
  // options that contradict each other. `controller` takes the place of the one that the options name.
  Engine(Group& group, std::vector<TensorInfo> tensors, EngineOptions options,
         std::unique_ptr<Controller> controller = nullptr);

  std::size_t tensors() const { return exchange_.tensors(); }
  const TensorInfo& tensor(std::size_t i) const { return exchange_.tensor(i); }
  // The codec settings that levels are places in, mildest first; the one in force, and whether the tensor is
  // compressed at it.
  const std::vector<CodecOptions>& levels() const { return levels_; }
  int level(std::size_t i) const { return exchange_.level(i); }
  bool compresses(std::size_t i) const { return exchange_.compresses(i); }
  const EngineOptions& options() const { return options_; }
  // As it is in force: a codec may limit the norm of gradients too.
  const CommunicationOptions& communication() const { return thread_.options(); }

  // Weighs this rank's gradient, a mean over `local_samples`, by its share of `global_samples`. Holds until
  // changed. A rank without samples says 0; its gradient must still be finite.
  void set_batch(std::int64_t local_samples, std::int64_t global_samples);
  // The same where the global number is not known. Collective.
  void set_batch(std::int64_t local_samples);

  // Gradients are posted, and come back, times this: a loss scale, the same on every rank. Residuals and norms are
  // without it. Holds until changed.
  void set_scale(double scale);

  // Takes a bucket of gradients and gives back their mean over the samples of all ranks. Its memory must last
  // until `done` is called, from another thread, when the step's last bucket has been exchanged.
  void post(PostedBucket bucket, CommunicationThread::Done done) {
    thread_.post(std::move(bucket), std::move(done));
  }

  // Returns when the steps that were posted have ended. The calls below that need it wait by themselves.
  void settle() { thread_.settle(); }

  // Whether the last step that was posted was kept: false when a rank's gradients were not finite. Waits for its end, which
  // one that was reduced elsewhere need not have reached when its caller has the means.
  bool last_step_kept() {
    settle();
    return thread_.last_step_kept();
  }

  // When its last bucket came: from then on this rank has waited for the others.
  StepClock::time_point last_ready() { return thread_.last_ready(); }

  // Called, between steps, before the engine decides and before its state is saved: whoever watches gradients that are not
  // posted hands over what they came to.
  void hand_over_first(std::function<void()> hand_over) { hand_over_ = std::move(hand_over); }

  // After each step, where the controller watches windows of steps; elsewhere it does nothing. `last`: of
  // training, which has nothing left to decide. Collective.
  void end_step(double next_learning_rate, bool last = false);

  // After each epoch: decides the levels of the next one. Collective.
  EpochReport end_epoch(double next_learning_rate, bool last = false);

  // What this rank has handed to the network so far, for gradients and for control.
  std::uint64_t sent_bytes() const { return group_.sent_bytes(); }

  // What this epoch has come to so far.
  EpochStats epoch_stats() {
    settle();
    return exchange_.epoch_stats();
  }

  // How well communication hid behind backward since the last call, or the last epoch's end.
  Overlap take_overlap() { return thread_.take_overlap(); }

  // Samples in a step of all ranks that the controller wants from the next epoch on, and why; 0: it leaves them
  // alone.
  std::int64_t batch() const { return steering_.batch(); }
  const std::string& batch_reason() const { return steering_.batch_reason(); }

  // Everything that the next step and the next decision depend on, between steps; each rank has its own. Loaded into an
  // engine of the same tensors and options that has not decided anything yet: it goes on as if there had been no
  // stop. Loading is collective. Without residuals every rank may load rank 0's state, of a group of any size.
  void save_state(const StateWriter& state);
  void load_state(const StateReader& state, Residuals residuals = Residuals::kKeep);

  // One of the last steps beside what follows from its parts, or from what the guard has learned of them. Nothing before a
  // second step in a row. Collective.
  std::optional<ExplainedStep> explain_step();

  // Shows every step from now on, when it has ended, on the thread that exchanges; empty: none. Between steps.
  void watch_steps(std::function<void(const StepTrace&)> see) {
    settle();
    see_step_ = std::move(see);
  }

  // Null without one.
  const Guard* guard() const { return guard_ ? &*guard_ : nullptr; }

  // The exchange itself, for what is not about posting. To be used only between steps, and by who posts.
  Exchange& exchange() { return exchange_; }

 private:
  void end_step(const StepTrace& trace);  // By the thread that exchanges.
  void take_over();
  void load_together(const std::function<void()>& load);

  Group group_;
  EngineOptions options_;
  std::vector<CodecOptions> levels_;
  std::unique_ptr<Controller> controller_;  // Until it moves to where it is asked.
  Exchange exchange_;
  std::optional<Guard> guard_;
  RecentSteps recent_;
  StepSplits splits_;
  std::function<void(const StepTrace&)> see_step_;
  std::function<void()> hand_over_;
  CommunicationThread thread_;
  Steering steering_;
  int epoch_ = 0;
};

}  // namespace accordion
