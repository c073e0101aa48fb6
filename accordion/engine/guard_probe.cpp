// The guard's probe: steps in turns dense and at the controller's levels, until it is known which of them are longer.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "accordion/base/median.h"
#include "accordion/engine/guard.h"

namespace accordion {
namespace {

constexpr std::size_t kMostCaps = 4;  // Levels that a probe tries.
constexpr int kMostRounds =
    6;  // There and back: what they have not told by then is in doubt until the next attempt.
constexpr double kClear = 1.5;       // Times as long: that is no chance.
constexpr double kApart = 1.1;       // The same, where neither has a step among the other's.
constexpr double kHarm = 1.02;       // Times as long as dense steps: that is too long.
constexpr double kMostShare = 0.01;  // Of the time, for probes that are tried again.

}  // namespace

std::vector<int> Guard::capped(int level) const {
  std::vector<int> levels = may_;
  for (int& each : levels) each = std::min(each, level);
  return levels;
}

// Dense, strong, mild, mild, strong, dense: what drifts meanwhile cancels.
void Guard::start_probe(const std::string& why) {
  if (std::exchange(fell_back_, false)) evidence_.clear();  // It had shown them shorter, which they were not.
  retry_at_ = -1;                                           // This is the attempt.
  std::set<int> caps(may_.begin(), may_.end());
  for (int level = 0; level < *caps.rbegin(); ++level) caps.insert(level);
  std::erase_if(caps, [&](int level) {
    return level == kDense || std::holds_alternative<NoneOptions>(levels_[static_cast<std::size_t>(level)]);
  });
  if (caps.empty()) return;
  tried_.clear();
  for (auto level = caps.rbegin(); level != caps.rend(); ++level) tried_.push_back(capped(*level));
  while (tried_.size() > kMostCaps)
    tried_.erase(tried_.begin() + static_cast<std::ptrdiff_t>(tried_.size() / 2));

  for (auto& [levels, evidence] : evidence_) evidence.shorter = evidence.longer = false;
  if (std::exchange(phase_, Phase::kProbing) != Phase::kProbing) rounds_ = 0;
  why_ = why;
  foreseen_ = elsewhere_ = false;
  watched_.clear();
  learned_.clear();
  start_round(tried_);
}

// Steps are not what they were. What was in force before is remembered, to see whether it was worth the probe.
void Guard::alarm(const std::string& why) {
  before_alarm_ = in_force_;
  evidence_.clear();
  start_probe(why);
}

// `kinds` and dense steps there, and the other way back.
void Guard::start_round(const std::vector<std::vector<int>>& kinds) {
  const bool first = learned_.empty();
  std::vector<Block> blocks = {{std::vector<int>(may_.size(), kDense), kBlock}};
  for (const std::vector<int>& levels : kinds) blocks.push_back({levels, kBlock});
  way_back_.assign(blocks.rbegin(), blocks.rend());
  // After an alarm every slow step counts: where the first half is clear, it is enough, with one dense step at its end. Dense steps
  // that gave the alarm are as good as a block of them.
  if (before_alarm_ && first) {
    blocks.push_back({blocks.front().levels, 2});
    if (latest_.size() == kBlock - 1) {
      watched_ = std::exchange(latest_, {});
      blocks.erase(blocks.begin());
    }
  }
  if (first) last_block_.clear();
  start_blocks(std::move(blocks));
}

// Where they begin as the last ones ended, that block goes on.
void Guard::start_blocks(std::vector<Block> blocks) {
  blocks_ = std::move(blocks);
  if (blocks_.front().levels != last_block_) return start_block();
  blocks_.front().steps += block_step_;
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
  if (counts) {
    watched_.push_back(watched_step(trace, blocks_.front().levels));
    watched_.back().seconds = seconds_of(trace);
    for (const BucketTrace& bucket : trace.buckets) elsewhere_ = elsewhere_ || bucket.elsewhere;
  }
  if (block_step_ < blocks_.front().steps) return;
  last_block_ = blocks_.front().levels;
  blocks_.erase(blocks_.begin());
  if (!blocks_.empty()) return start_block();
  measure();
  if (!way_back_.empty() && !(before_alarm_ && rounds_ == 0 && clear()))
    return start_blocks(std::exchange(way_back_, {}));
  way_back_.clear();
  end_round();
}

// What is as good as dense costs nothing to watch for longer.
void Guard::end_round() {
  ++rounds_;
  if (watch_.dense_steps() < 2 || evidence_.empty()) return start_anew();
  if (const std::vector<std::vector<int>> more = unsettled(); !more.empty() && rounds_ < kMostRounds)
    return start_round(more);
  costs_.learn(learned_, buckets_);
  phase_ = Phase::kGuarding;
  decide(why_);
}

// What the steps of one way took, on all ranks.
void Guard::measure() {
  control_bytes_ += agree(ranks_, watched_);
  std::erase_if(watched_, [](const WatchedStep& step) { return GuardWatch::is_pause(step.seconds); });
  const auto by_levels = [](const std::vector<WatchedStep>& steps) {
    std::map<std::vector<int>, std::vector<double>> seconds;
    for (const WatchedStep& step : steps) seconds[step.levels].push_back(step.seconds);
    return seconds;
  };
  const std::vector<int> plain(may_.size(), kDense);
  std::map<std::vector<int>, std::vector<double>> way = by_levels(watched_);
  const double dense_here = median_of(way[plain]).value;
  for (const auto& [levels, seconds] : way)
    if (levels != plain && dense_here > 0) evidence_[levels].pairs.add(median_of(seconds).value, dense_here);
  learned_.insert(learned_.end(), watched_.begin(), watched_.end());
  watched_.clear();

  std::map<std::vector<int>, std::vector<double>> all = by_levels(learned_);
  watch_.probed(all[plain]);
  const Median dense = watch_.dense();
  for (const auto& [levels, seconds] : all) {
    if (levels == plain) continue;
    const Median steps = median_of(seconds);
    Evidence& evidence = evidence_[levels];
    evidence.shorter = steps.high < dense.low && kApart * steps.value < dense.value;
    evidence.longer = steps.low > dense.high && steps.value > kApart * dense.value;
  }
}

// Whether compressed steps differ from all dense ones, before and after them, by so much that no drift explains it.
bool Guard::clear() const {
  if (watch_.dense_steps() < 2) return false;
  double best = std::numeric_limits<double>::infinity();
  const Median dense = watch_.dense();  // Of so few the interval is all of them.
  for (const std::vector<int>& levels : tried_)
    if (const auto found = evidence_.find(levels);
        found != evidence_.end() && found->second.pairs.count() > 0)
      best = std::min(best, found->second.pairs.longer().value * dense.value);
  return std::isfinite(best) && (dense.low > kClear * best || best > kClear * dense.high);
}

bool Guard::harmless(const Evidence& evidence) const {
  const Longer longer = evidence.pairs.longer();
  return !evidence.longer && longer.low <= 1 && (evidence.shorter || longer.high <= kHarm);
}

// Whether more steps would change what is made of them.
bool Guard::settled(const Evidence& evidence) const {
  if (evidence.shorter || evidence.longer) return true;
  const Longer longer = evidence.pairs.longer();
  if (goal_ == perf::Goal::kHarmless) return longer.low > 1 || longer.high <= kHarm;
  return longer.high < 1 || longer.low > 1 / perf::kMilder;
}

// Of harmless levels the strongest counts alone.
std::vector<std::vector<int>> Guard::unsettled() const {
  std::vector<std::vector<int>> unsettled;
  for (const std::vector<int>& levels : tried_) {
    const auto found = evidence_.find(levels);
    if (found == evidence_.end()) continue;
    if (goal_ == perf::Goal::kHarmless && harmless(found->second)) break;
    if (!settled(found->second)) unsettled.push_back(levels);
  }
  return unsettled;
}

std::vector<Probed> Guard::probed() const {
  std::vector<Probed> probed;
  for (auto kind = evidence_.rbegin(); kind != evidence_.rend(); ++kind)  // Strongest first.
    if (kind->second.pairs.count() > 0)
      probed.push_back(
          {kind->first, kind->second.pairs.longer().value * watch_.dense().value, harmless(kind->second)});
  return probed;
}

// All layers are dense. Where that is not known for good, there is another attempt, when time enough has passed that all that
// attempts have cost is little.
void Guard::try_later() {
  const bool sure = std::all_of(tried_.begin(), tried_.end(), [&](const std::vector<int>& levels) {
    const auto found = evidence_.find(levels);
    return found != evidence_.end() && found->second.pairs.count() >= StepPairs::kEnough &&
           settled(found->second);
  });
  if (sure) return;
  double extra = 0;  // Steps.
  for (const WatchedStep& step : learned_)
    if (!all_dense(step.levels)) extra += std::max(0.0, step.seconds / watch_.dense().value - 1);
  retry_at_ =
      step_ + std::max(wait_, static_cast<std::int64_t>(std::min(1e9, std::ceil(extra / kMostShare))));
  wait_ = std::min(2 * wait_, kLongestWait);
}

}  // namespace accordion
