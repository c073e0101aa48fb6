// What a guard sees of steps once it has decided: whether they take what was expected of them, and no more than dense ones do.
//
// Arithmetic on seconds that all ranks have agreed on, so that all ranks see the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "accordion/base/median.h"
#include "accordion/engine/step_pairs.h"

namespace accordion {

class GuardWatch {
 public:
  static constexpr int kWindow = 50;  // Steps.

  // Seconds that stand for a step before which a rank did something else: they say nothing.
  static constexpr double kPause = 1e9;
  static bool is_pause(double seconds) { return seconds >= kPause; }

  // The dense steps of a probe: others are held against these, until there are some from among the others.
  void probed(std::vector<double> dense);

  // Levels are in force whose steps should take so long. Not finite: nobody knows.
  void expect(double seconds);
  double expected() const { return expected_; }

  // Steps between two glances: as few as tell something, and so many that agreeing on them takes next to nothing.
  int glance_steps() const;

  // The steps since the last glance. Whether they are so far off what was expected that the window's end is not waited for.
  // `wire`: what their messages took.
  bool glance(std::span<const double> seconds, std::span<const double> wire = {});
  double glanced() const { return glanced_; }  // Their median.
  // Messages have become faster by a third and more: dense steps may be shorter by now. Told once.
  bool recovers() { return std::exchange(recovers_, false); }

  // kDrifts: off what was expected, but so has it been for nothing before, or nothing hangs on it; another window tells. kStillPays:
  // off twice, and so far from dense steps that there is nothing else to choose. That is what is expected now, and a dense step is due.
  enum class Verdict { kAsExpected, kSlowerThanDense, kDrifts, kStillPays, kOff };
  enum class Levels { kDense, kSome, kStrongest };  // In force: some of what may be, or all of it.
  struct Window {
    Verdict verdict;
    double expected, measured;
    bool first;  // Since something was expected.
  };
  // All steps since the last window's end. Nothing, where they are too few to tell. `longer`: than single dense steps among them.
  std::optional<Window> end_window(Levels levels, const Longer& longer = {});

  // A single dense step among compressed ones. Whether dense steps have become shorter, for good as it seems.
  bool see_dense(double seconds);
  bool suspects() const { return !short_.empty(); }  // The last one was: only another can tell.
  Median dense() const { return median_of(dense_); }
  std::size_t dense_steps() const { return dense_.size(); }
  std::int64_t dense_every()
      const;  // Steps from one to the next, so that they take their share of the time and no more.
  bool doubts() const { return doubts_; }  // Whether steps seem slower than dense ones.

  // What became of the last alarm, which a glance or dense steps gave: alarms for nothing make it slower to give another.
  void heeded(bool for_nothing);
  // The same of a window that was off.
  void heeded_window(bool for_nothing);

 private:
  bool nothing_else_to_choose(Levels levels, double seconds) const;

  double expected_ = std::numeric_limits<double>::quiet_NaN();
  bool checked_ = false;  // Whether that was measured in a window.
  int surprises_ = 0;     // Decisions in a row whose first window was not as foreseen.
  std::vector<double> window_;
  double wire_ =
      std::numeric_limits<double>::quiet_NaN();  // What messages take in a step that is as expected.
  std::vector<double> wire_window_;
  bool recovers_ = false;
  int drifting_ = 0;         // Windows in a row that were off,
  int window_patience_ = 1;  // and as many as are heeded.
  double glanced_ = 0;
  int far_ = 0;       // Glances in a row that were far off,
  int patience_ = 1;  // and as many as make an alarm.

  std::vector<double> dense_;  // Seconds of the last dense steps;
  std::size_t older_ = 0;      // so many of them are from before the decision.
  std::vector<double> short_;  // Those since, in a row, that were far shorter.
  double last_dense_ = 0, dense_before_ = 0;
  bool doubts_ = false;
};

}  // namespace accordion
