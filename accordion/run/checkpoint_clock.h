// When a checkpoint is due.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace accordion {

// "500steps", "10min", "2epochs"; "auto": after an epoch, unless that would take more than a hundredth of the time; "never".
struct CheckpointEvery {
  enum class Unit { kAuto, kNever, kSteps, kMinutes, kEpochs };
  Unit unit = Unit::kAuto;
  double count = 1;
};
// Throws UsageError naming `owner` and the option.
CheckpointEvery parse_checkpoint_every(const std::string& owner, const std::string& text);

class CheckpointClock {
 public:
  using Clock = std::chrono::steady_clock;

  CheckpointClock(CheckpointEvery every, Clock::time_point now) : every_(every), last_(now) {}

  // After a step, the run's `step`th, which may end its epoch, the run's `epochs`th.
  bool due(std::int64_t step, bool ends_epoch, int epochs, Clock::time_point now) const;

  void wrote(Clock::time_point begin, Clock::time_point end);

 private:
  CheckpointEvery every_;
  Clock::time_point last_;
  Clock::duration took_ = {};
};

}  // namespace accordion
