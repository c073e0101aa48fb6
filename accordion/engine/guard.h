// Sees to it that compression pays. The controller says how strong a level each layer *may* get; the guard finds out, in the
// run itself, which of the levels up to that, or dense, is worth its cost on this machine and network, and puts that in force.
//
// It watches steps, in turns dense and at the controller's levels (a probe), until it can tell which of them are longer; learns from
// them what a step costs in its parts, has perf/pays.h search for what pays, and goes on comparing: steps slower than dense ones put
// everything back to dense, steps that take another time than they should call for a new probe.
//
// Where the codec keeps the optimizer's momentum, it watches nothing: a profile has said before the first step whether it pays.
//
// Called at the end of every step, by the thread that exchanges, and between steps by the training thread, on all ranks alike:
// its calls are collective.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/engine/guard_choice.h"
#include "accordion/engine/guard_profile.h"
#include "accordion/engine/guard_watch.h"
#include "accordion/engine/step_costs.h"
#include "accordion/engine/step_pairs.h"
#include "accordion/exchange/exchange.h"
#include "accordion/log/guard_event.h"
#include "accordion/perf/pays.h"

namespace accordion {

class Guard {
 public:
  Guard(perf::Goal goal, std::vector<CodecOptions> levels, Exchange& exchange, Communicator& ranks);
  // All tensors get what the controller says, or none does: it has been decided.
  Guard(ProfileVerdict verdict, std::vector<CodecOptions> levels, Exchange& exchange, Communicator& ranks);
  // Makes the changes of another run, at the same steps, and no others.
  Guard(std::vector<GuardEvent> replay, std::vector<CodecOptions> levels, Exchange& exchange,
        Communicator& ranks);

  // Whether nothing will be compressed, and the momentum is the optimizer's, where the codec would keep it.
  bool always_dense() const;

  // What each tensor may get from now on.
  void allow(std::span<const int> may);

  // A step is not what it was: its batch has changed.
  void start_anew();

  void end_step(const StepTrace& trace);
  void end_epoch();

  // The levels in force. Loaded, it watches anew from there.
  void save_state(const StateWriter& state) const;
  void load_state(const StateReader& state);

  // For the record. Reasons are rank 0's.
  int may(std::size_t tensor) const { return may_[tensor]; }
  const std::string& reason(std::size_t tensor) const {
    return phase_ == Phase::kProbing ? kBeingProbed : reasons_[tensor];
  }
  std::vector<GuardEvent> take_events() { return std::exchange(events_, {}); }
  std::uint64_t take_control_bytes() { return std::exchange(control_bytes_, 0); }

  // What it has learned of steps.
  const StepCosts& costs() const { return costs_; }

 private:
  static constexpr std::size_t kBlock = 5;  // Steps of a probe in a row; the first does not count.
  static constexpr std::int64_t kLongestWait = 5000;
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  static inline const std::string kBeingProbed = "being probed";

  enum class Phase {
    kSettling,  // Buckets are not what they were in the step before.
    kProbing,
    kGuarding,
  };
  // Some steps in a row with the same levels; all kDense: plain ones.
  struct Block {
    std::vector<int> levels;
    std::size_t steps;
  };
  // What is known of some levels beside dense ones: from pairs of neighbours, and whether the last probe left no doubt.
  struct Evidence {
    StepPairs pairs;
    bool shorter = false, longer = false;
  };

  bool same_buckets(const StepTrace& trace);
  bool tells(const StepTrace& trace) const;
  bool compressible() const;
  void notice_pause(const StepTrace& trace);
  double seconds_of(const StepTrace& trace) const;
  std::vector<int> capped(int level) const;
  void start_probe(const std::string& why);
  void alarm(const std::string& why);
  void start_round(const std::vector<std::vector<int>>& kinds);
  void start_blocks(std::vector<Block> blocks);
  void start_block();
  void probe(const StepTrace& trace);
  void end_round();
  void measure();
  bool clear() const;
  bool harmless(const Evidence& evidence) const;
  bool settled(const Evidence& evidence) const;
  std::vector<std::vector<int>> unsettled() const;
  std::vector<Probed> probed() const;
  void decide(const std::string& why);
  void try_later();
  void expect(double seconds);
  void watch(const StepTrace& trace, bool plain);
  void see_dense(double seconds);
  void glance();
  void agree_on(std::span<double> seconds);
  void end_window();
  void fall_back();
  void put(const std::vector<int>& levels, bool plain = false);
  void note(std::string event, std::vector<int> levels, double predicted, double measured, std::string reason,
            double simulated = kUnknown);
  void obey();
  void replay();

  perf::Goal goal_ = perf::Goal::kHarmless;
  std::vector<CodecOptions> levels_;
  Exchange& exchange_;
  Communicator& ranks_;
  std::optional<ProfileVerdict> verdict_;
  bool obeyed_ = false;
  bool replays_ = false;
  std::vector<GuardEvent> recorded_;
  std::size_t replayed_ = 0;

  Phase phase_ = Phase::kSettling;
  std::int64_t step_ = 0;
  std::vector<int> may_, in_force_;
  std::vector<std::string> reasons_;
  std::vector<std::vector<Slice>> buckets_;  // Of the last step.
  bool elsewhere_ = false;                   // In the last probe, some were reduced by other means.
  std::vector<double> first_ready_;          // Of the last steps: when their first bucket came.
  bool paused_ = false;                      // This rank did something else before the step.
  StepCosts costs_;

  std::vector<Block> blocks_;                     // Of the probe, the first being under way,
  std::vector<Block> way_back_;                   // those after them, in the other order,
  std::vector<int> last_block_;                   // the one before them,
  std::size_t block_step_ = 0;                    // so many steps of the first,
  std::vector<WatchedStep> watched_;              // those on this way,
  std::vector<WatchedStep> learned_;              // and on ways before it, agreed;
  std::vector<std::vector<int>> tried_;           // the levels that it is about, strongest first,
  int rounds_ = 0;                                // there and back so many times,
  bool foreseen_ = false;                         // whether they have come to those that no probe began with,
  std::string why_;                               // and its cause.
  std::optional<std::vector<int>> before_alarm_;  // What was in force, where that is an alarm,
  std::optional<std::vector<int>> before_drift_;  // or a window that was off.
  std::map<std::vector<int>, Evidence> evidence_;  // Of levels, as long as nothing seems to have changed.

  GuardWatch watch_;
  StepPairs check_;                  // Levels in force beside single dense steps, since the decision.
  std::vector<double> recent_;       // Seconds of steps since the last glance, as this rank had them,
  std::vector<double> recent_wire_;  // and of their messages.
  std::vector<double> neighbours_;   // Seconds of the last compressed steps.
  std::vector<WatchedStep> latest_;  // The last steps, where all layers are dense.
  int recent_steps_ = 0, window_steps_ = 0;
  std::int64_t next_dense_ = 0;
  bool suspects_ = false;  // That dense steps are shorter by now.
  std::int64_t retry_at_ =
      -1;  // Not -1: all layers are dense until then, as compressed steps were slower or seemed so;
  bool fell_back_ = false;  // after they had been in force.
  std::int64_t wait_ = 200;

  std::vector<GuardEvent> events_;
  std::uint64_t control_bytes_ = 0;
};

}  // namespace accordion
