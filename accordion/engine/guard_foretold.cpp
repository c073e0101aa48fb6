// A guard that watches nothing, as it is known beforehand what pays: from a profile, or from the run that is replayed.
#include <string_view>
#include <utility>

#include "accordion/engine/guard.h"

namespace accordion {
namespace {

constexpr std::string_view kLevels = "the controller's levels";

// Whether it was noted when the controller's levels came, between two steps. What ends a probe has the probe's reason, and is
// noted at a step's end.
bool came_with_levels(const std::vector<GuardEvent>& events, std::size_t i) {
  const auto probes = [&](std::size_t k) {
    return events[k].event == "probe" && events[k].reason == events[i].reason;
  };
  return events[i].reason.starts_with(kLevels) && (i == 0 || !probes(i - 1));
}

}  // namespace

Guard::Guard(ProfileVerdict verdict, std::vector<CodecOptions> levels, Exchange& exchange,
             Communicator& ranks)
    : Guard(perf::Goal::kHarmless, std::move(levels), exchange, ranks) {
  verdict_ = std::move(verdict);
  if (!verdict_->compress) reasons_.assign(reasons_.size(), "dense: " + verdict_->reason);
}

Guard::Guard(std::vector<GuardEvent> replay, std::vector<CodecOptions> levels, Exchange& exchange,
             Communicator& ranks)
    : Guard(perf::Goal::kHarmless, std::move(levels), exchange, ranks) {
  replays_ = true;
  recorded_ = std::move(replay);
}

bool Guard::always_dense() const {
  if (verdict_) return !verdict_->compress;
  if (!replays_ || !traits_of(levels_[0]).momentum) return false;
  return !recorded_.empty() && all_dense(recorded_[0].levels);
}

// Once for all; what changes are the controller's levels.
void Guard::obey() {
  const std::vector<int> levels = verdict_->compress ? may_ : std::vector<int>(may_.size(), kDense);
  const bool first = !std::exchange(obeyed_, true);
  if (first)
    note("decide", levels, verdict_->seconds, kUnknown, verdict_->reason);
  else if (levels != in_force_)
    note("decide", levels, kUnknown, kUnknown, "the controller's levels have changed");
  put(levels);
}

// Asked at a step's end, and again when the controller's levels come, before which the record takes down the levels of the steps
// until then.
void Guard::replay() {
  constexpr std::int64_t kDue = 0;  // The step of an event that waits no longer.
  for (; replayed_ < recorded_.size() && recorded_[replayed_].step <= step_; ++replayed_) {
    GuardEvent& event = recorded_[replayed_];
    if (ranks_.rank() == 0 && !(event.step == kDue && step_ > 0)) events_.push_back(event);
    if (event.step == step_ && step_ > 0 && came_with_levels(recorded_, replayed_)) {
      event.step = kDue;
      return;
    }
    if (event.levels.empty()) continue;
    put(event.levels, event.event == "probe" && all_dense(event.levels));
  }
}

}  // namespace accordion
