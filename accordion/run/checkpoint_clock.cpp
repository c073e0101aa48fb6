#include "accordion/run/checkpoint_clock.h"

#include <charconv>
#include <cmath>

#include "accordion/base/error.h"

namespace accordion {

CheckpointEvery parse_checkpoint_every(const std::string& owner, const std::string& text) {
  using Unit = CheckpointEvery::Unit;
  if (text == "auto") return {Unit::kAuto};
  if (text == "never") return {Unit::kNever};
  double count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string unit(end, text.data() + text.size());
  const bool whole = count == std::floor(count);
  if (error == std::errc() && count > 0 && count <= 1e15) {
    if (unit == "min") return {Unit::kMinutes, count};
    if ((unit == "step" || unit == "steps") && whole) return {Unit::kSteps, count};
    if ((unit == "epoch" || unit == "epochs") && whole) return {Unit::kEpochs, count};
  }
  throw UsageError(owner + ": checkpoint-every=" + text +
                   ", expected a number of steps, min or epochs (500steps, 10min, 1epoch), auto or never");
}

bool CheckpointClock::due(std::int64_t step, bool ends_epoch, int epochs, Clock::time_point now) const {
  switch (every_.unit) {
    case CheckpointEvery::Unit::kNever:
      return false;
    case CheckpointEvery::Unit::kAuto:
      return ends_epoch && now - last_ >= 100 * took_;
    case CheckpointEvery::Unit::kSteps:
      return step % static_cast<std::int64_t>(every_.count) == 0;
    case CheckpointEvery::Unit::kMinutes:
      return now - last_ >= std::chrono::duration<double, std::ratio<60>>(every_.count);
    case CheckpointEvery::Unit::kEpochs:
      return ends_epoch && epochs % static_cast<std::int64_t>(every_.count) == 0;
  }
  return false;
}

void CheckpointClock::wrote(Clock::time_point begin, Clock::time_point end) {
  last_ = end;
  took_ = end - begin;
}

}  // namespace accordion
