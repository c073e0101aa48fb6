// The guard's probe: steps in turns dense and at the controller's levels, and what they took.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "accordion/base/median.h"
#include "accordion/engine/guard.h"

namespace accordion {
namespace {

constexpr std::size_t kMostCaps = 4;  // Levels that a probe tries.
constexpr double kClear = 1.5;        // Times as long: that is no chance.
constexpr double kHarm = 1.02;        // Times as long as dense steps: that is too long.

}  // namespace

std::vector<int> Guard::capped(int level) const {
  std::vector<int> levels = may_;
  for (int& each : levels) each = std::min(each, level);
  return levels;
}

// Dense, strong, mild, mild, strong, dense: what drifts meanwhile cancels.
void Guard::start_probe(const std::string& why) {
  retry_at_ = -1;  // This is the attempt.
  std::set<int> caps(may_.begin(), may_.end());
  for (int level = 0; level < *caps.rbegin(); ++level) caps.insert(level);
  std::erase_if(caps, [&](int level) {
    return level == kDense || std::holds_alternative<NoneOptions>(levels_[static_cast<std::size_t>(level)]);
  });
  if (caps.empty()) return;
  std::vector<int> tried(caps.rbegin(), caps.rend());
  while (tried.size() > kMostCaps) tried.erase(tried.begin() + static_cast<std::ptrdiff_t>(tried.size() / 2));

  blocks_ = {{std::vector<int>(may_.size(), kDense), kBlock}};
  for (const int level : tried) blocks_.push_back({capped(level), kBlock});
  way_back_.assign(blocks_.rbegin(), blocks_.rend());
  repeated_ = false;
  phase_ = Phase::kProbing;
  watched_.clear();
  // After an alarm every slow step counts: where the first half is clear, it is enough, with one dense step at its end. Dense steps
  // that gave the alarm are as good as a block of them.
  if (before_alarm_) {
    blocks_.push_back({blocks_.front().levels, 2});
    if (latest_.size() == kBlock - 1) {
      watched_ = std::exchange(latest_, {});
      blocks_.erase(blocks_.begin());
    }
  }
  why_ = why;
  start_block();
}

// Steps are not what they were. What was in force before is remembered, to see whether it was worth the probe.
void Guard::alarm(const std::string& why) {
  before_alarm_ = in_force_;
  start_probe(why);
}

void Guard::start_block() {
  block_step_ = 0;
  const std::vector<int>& levels = blocks_.front().levels;
  note("probe", levels, kUnknown, kUnknown, why_);
  put(levels, all_dense(levels));
}

void Guard::probe(const StepTrace& trace) {
  // All ranks must keep the same steps.
  const bool counts = ++block_step_ > 1 && tells(trace);
  if (counts) watched_.push_back(watched_step(trace, blocks_.front().levels));
  if (block_step_ < blocks_.front().steps) return;
  const Block ended = blocks_.front();
  blocks_.erase(blocks_.begin());
  if (!blocks_.empty()) return start_block();
  if (before_alarm_ || way_back_.empty()) measure();
  if (!way_back_.empty() && !(before_alarm_ && clear())) {
    blocks_ = std::exchange(way_back_, {});
    if (blocks_.front().levels != ended.levels) return start_block();
    blocks_.front().steps += ended.steps;  // It goes on.
    return;
  }
  if (watch_.dense_steps() < 2 || measured_.empty()) return start_anew();
  if (goal_ == perf::Goal::kHarmless && !close_.empty() && !std::exchange(repeated_, true))
    return probe_again();
  costs_.learn(watched_, buckets_);
  phase_ = Phase::kGuarding;
  decide(why_);
}

// What is as good as dense costs nothing to watch for longer. The last block was dense: now the other way round.
void Guard::probe_again() {
  for (const std::vector<int>& levels : close_) blocks_.push_back({levels, kBlock});
  blocks_.push_back({std::vector<int>(may_.size(), kDense), kBlock});
  way_back_.assign(blocks_.rbegin(), blocks_.rend());
  start_block();
}

// What the watched steps took, on all ranks.
void Guard::measure() {
  agree(ranks_, watched_);
  std::map<std::vector<int>, std::vector<double>> seconds;
  for (const WatchedStep& step : watched_) seconds[step.levels].push_back(step.seconds);
  watch_.probed(seconds[std::vector<int>(may_.size(), kDense)]);
  measured_.clear();
  close_.clear();
  const Median dense = watch_.dense();
  bool harmless = false;
  for (auto kind = seconds.rbegin(); kind != seconds.rend(); ++kind) {  // Strongest first.
    if (all_dense(kind->first)) continue;
    const Median steps = median_of(kind->second);
    measured_.emplace_back(kind->first, steps.value);
    if (harmless || steps.low > dense.high) continue;
    harmless = steps.high <= kHarm * dense.low;  // Then nothing milder matters.
    if (!harmless) close_.push_back(kind->first);
  }
}

// Whether compressed steps differ from all dense ones, before and after them, by so much that no drift explains it.
bool Guard::clear() const {
  if (measured_.empty() || watch_.dense_steps() < 2) return false;
  double best = measured_[0].second;
  for (const auto& [levels, seconds] : measured_) best = std::min(best, seconds);
  const Median dense = watch_.dense();  // Of so few the interval is all of them.
  return dense.low > kClear * best || best > kClear * dense.high;
}

}  // namespace accordion
