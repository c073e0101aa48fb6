#include "accordion/engine/guard.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/base/median.h"

namespace accordion {
namespace {

constexpr std::int64_t kDoubtEvery = 5;
constexpr std::size_t kNeighbours = 5;   // Compressed steps that a dense one among them is held against.
constexpr std::size_t kFirstReady = 15;  // Steps that say when the first bucket comes.
constexpr double kPause = 3;             // Times as late: something else came before.

}  // namespace

Guard::Guard(perf::Goal goal, std::vector<CodecOptions> levels, Exchange& exchange, Communicator& ranks)
    : goal_(goal),
      levels_(std::move(levels)),
      exchange_(exchange),
      ranks_(ranks),
      may_(exchange.tensors(), 0),
      in_force_(exchange.tensors(), 0),
      reasons_(exchange.tensors()),
      costs_(exchange, ranks.size()) {}

void Guard::allow(std::span<const int> may) {
  const std::vector<int> before = std::exchange(may_, std::vector<int>(may.begin(), may.end()));
  if (replays_) return replay();
  if (verdict_) return obey();
  if (step_ > 0 && before == may_) return;
  // Steps were slower than dense ones: other levels are tried when the wait is over, too.
  if (retry_at_ >= 0 && fell_back_) return;
  retry_at_ = -1;
  // Never stronger than it may be, whatever pays.
  const bool known = phase_ == Phase::kGuarding && !elsewhere_ &&
                     std::all_of(costs_.tensors().begin(), costs_.tensors().end(), [&](int tensor) {
                       const auto i = static_cast<std::size_t>(tensor);
                       return costs_.knows(i, may_[i]);
                     });
  foreseen_ = false;
  learned_.clear();
  if (known && compressible()) return decide("the controller's levels have changed");
  if (phase_ != Phase::kSettling && compressible())
    return start_probe("the controller's levels have changed");
  phase_ = Phase::kSettling;
  note("decide", may_, kUnknown, kUnknown, "the controller's levels, until steps have been watched");
  put(may_);
}

void Guard::start_anew() {
  if (replays_ || verdict_) return;
  const bool probing = std::exchange(phase_, Phase::kSettling) == Phase::kProbing;
  retry_at_ = -1;
  fell_back_ = false;
  blocks_.clear();
  way_back_.clear();
  watched_.clear();
  learned_.clear();
  latest_.clear();
  evidence_.clear();
  buckets_.clear();
  first_ready_.clear();
  before_alarm_.reset();
  before_drift_.reset();
  if (!exchange_.plain() && !probing) return;
  const std::vector<int> levels = probing ? may_ : in_force_;
  note("go on", levels, kUnknown, kUnknown, "steps are not what they were");
  put(levels);
}

void Guard::end_step(const StepTrace& trace) {
  ++step_;
  if (replays_) return replay();
  if (verdict_) return;
  const bool same = same_buckets(trace);
  notice_pause(trace);
  switch (phase_) {
    case Phase::kSettling:
      if (same && compressible()) start_probe("what steps cost is not known yet");
      break;
    case Phase::kProbing:
      if (same)
        probe(trace);
      else
        start_anew();
      break;
    case Phase::kGuarding:
      if (!same)
        start_anew();
      else if (compressible())
        watch(trace, exchange_.plain());
      break;
  }
}

void Guard::end_epoch() {
  if (phase_ != Phase::kGuarding) return;
  glance();
  if (phase_ == Phase::kGuarding) end_window();
}

// Remembers this step's. All ranks have the same.
bool Guard::same_buckets(const StepTrace& trace) {
  std::vector<std::vector<Slice>> buckets;
  for (const BucketTrace& bucket : trace.buckets) buckets.push_back(bucket.slices);
  const auto equal = [](const std::vector<Slice>& a, const std::vector<Slice>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Slice& x, const Slice& y) {
      return x.tensor == y.tensor && x.count == y.count;
    });
  };
  const bool same = std::equal(buckets.begin(), buckets.end(), buckets_.begin(), buckets_.end(), equal);
  buckets_ = std::move(buckets);
  return same;
}

// A step that was dropped, or that came after something else, says nothing about the next one.
bool Guard::tells(const StepTrace& trace) const {
  return trace.begin && trace.kept;
}

// An evaluation or a checkpoint of the script's own shows in that the first bucket comes late, perhaps on one rank alone.
void Guard::notice_pause(const StepTrace& trace) {
  paused_ = false;
  if (!trace.begin || trace.buckets.empty()) return;
  const double ready = seconds_between(*trace.begin, trace.buckets.front().ready);
  paused_ = first_ready_.size() >= kFirstReady / 3 && ready > kPause * median_of(first_ready_).value;
  if (first_ready_.size() == kFirstReady) first_ready_.erase(first_ready_.begin());
  first_ready_.push_back(ready);
}

// The largest over ranks is agreed on: of all of them it is a pause where it is one of any.
double Guard::seconds_of(const StepTrace& trace) const {
  return paused_ ? GuardWatch::kPause : seconds_between(*trace.begin, trace.end);
}

bool Guard::compressible() const {
  for (std::size_t i = 0; i < may_.size(); ++i)
    if (may_[i] != kDense && !std::holds_alternative<NoneOptions>(levels_[static_cast<std::size_t>(may_[i])]))
      return true;
  return false;
}

// In force from the next step on: what pays of what may be, by what is known. What is merely foreseen to be a little better than dense
// is tried out first, once.
void Guard::decide(const std::string& why) {
  std::vector<std::int64_t> message(may_.size() + 3);
  if (ranks_.rank() == 0) {
    const double dense = watch_.dense().value;
    const std::vector<std::string> names = level_names(levels_);
    GuardChoice choice = elsewhere_ ? choose_probed(may_, probed(), dense, goal_, names)
                                    : choose(costs_, may_, probed(), dense, goal_, names, !foreseen_);
    std::copy(choice.levels.begin(), choice.levels.end(), message.begin());
    message.end()[-3] = choice.foreseen;
    message.end()[-2] = std::bit_cast<std::int64_t>(choice.seconds);
    message.end()[-1] = std::bit_cast<std::int64_t>(choice.simulated_seconds);
    if (!choice.foreseen) reasons_ = std::move(choice.reasons);
  }
  ranks_.broadcast(std::as_writable_bytes(std::span(message)), 0);
  control_bytes_ += message.size() * sizeof message[0];
  const bool foreseen = message.end()[-3] != 0;
  const auto predicted = std::bit_cast<double>(message.end()[-2]),
             simulated = std::bit_cast<double>(message.end()[-1]);
  const std::vector<int> levels(message.begin(), message.end() - 3);
  if (foreseen) {
    foreseen_ = true;
    phase_ = Phase::kProbing;
    why_ = why;
    tried_.insert(tried_.begin(), levels);
    rounds_ = 0;
    return start_round({levels});
  }
  note("decide", levels, predicted, watch_.dense().value, why, simulated);
  put(levels);
  if (before_alarm_) watch_.heeded(levels == *before_alarm_);
  if (before_drift_) watch_.heeded_window(levels == *before_drift_);
  before_alarm_.reset();
  before_drift_.reset();
  if (all_dense(levels)) try_later();
  expect(predicted);
}

void Guard::expect(double seconds) {
  watch_.expect(seconds);
  check_ = {};
  recent_.clear();
  recent_wire_.clear();
  neighbours_.clear();
  latest_.clear();
  window_steps_ = recent_steps_ = 0;
  next_dense_ = step_ + watch_.dense_every();
}

void Guard::watch(const StepTrace& trace, bool plain) {
  if (plain) {
    put(in_force_);
    note("go on", in_force_, kUnknown, kUnknown, "as before the dense step");
  }
  if (tells(trace)) {
    const double seconds = seconds_of(trace);
    if (plain) {
      see_dense(seconds);
    } else {
      recent_.push_back(seconds);
      double wire = 0;
      for (const BucketTrace& bucket : trace.buckets)
        for (const CollectiveTime& message : bucket.times.collectives) wire += message.seconds();
      recent_wire_.push_back(wire);
      neighbours_.push_back(seconds);
      if (neighbours_.size() > kNeighbours) neighbours_.erase(neighbours_.begin());
    }
    if (all_dense(in_force_)) {
      latest_.push_back(watched_step(trace, in_force_));
      latest_.back().seconds = seconds;
    }
    if (latest_.size() > kBlock - 1) latest_.erase(latest_.begin());
  }
  if (phase_ != Phase::kGuarding) return;
  ++window_steps_;
  if (++recent_steps_ >= watch_.glance_steps() || window_steps_ >= GuardWatch::kWindow) glance();
  // What dense steps were taken for may be told before the window's end.
  const bool told = plain && watch_.doubts() && check_.longer().low > 1;
  if (phase_ == Phase::kGuarding && (window_steps_ >= GuardWatch::kWindow || told)) end_window();
  if (phase_ != Phase::kGuarding || all_dense(in_force_)) return;
  if (step_ < next_dense_ && !watch_.suspects() && !suspects_) return;
  // One that comes early is paid for by the next, which comes later.
  next_dense_ = watch_.doubts() ? step_ + kDoubtEvery : std::max(next_dense_, step_) + watch_.dense_every();
  note("probe", std::vector<int>(may_.size(), kDense), kUnknown, kUnknown,
       watch_.suspects() || suspects_ ? "to see whether dense steps are shorter by now"
                                      : "to know what a dense step takes by now");
  suspects_ = false;
  exchange_.set_plain(true);
}

// All ranks must hear of it at once: the next step may be dense as well, or a probe's.
void Guard::see_dense(double dense) {
  std::vector<double> around = neighbours_;
  around.push_back(dense);
  agree_on(std::span(around));
  const double seconds = around.back();
  if (GuardWatch::is_pause(seconds)) return;
  around.pop_back();
  std::erase_if(around, GuardWatch::is_pause);
  if (2 * around.size() > kNeighbours && !all_dense(in_force_)) {
    const double others = median_of(std::move(around)).value;
    check_.add(others, seconds);
    evidence_[in_force_].pairs.add(others, seconds);
  }
  const double before = watch_.dense().value;
  if (!watch_.see_dense(seconds)) return;
  note("check", {}, before, seconds, "dense steps are shorter than they were by more than a quarter");
  alarm("dense steps are shorter than they were");
}

// Ranks agree on the last steps, which may be so far off that something must have changed.
void Guard::glance() {
  recent_steps_ = 0;
  // The largest of steps over ranks; of messages the smallest, because the others' include waiting.
  std::vector<double> both = std::exchange(recent_, {});
  const std::size_t steps = both.size();
  for (const double wire : std::exchange(recent_wire_, {})) both.push_back(-wire);
  agree_on(std::span(both));
  std::vector<double> seconds, wire;
  for (std::size_t k = 0; k < steps; ++k) {
    if (GuardWatch::is_pause(both[k])) continue;
    seconds.push_back(both[k]);
    wire.push_back(-both[steps + k]);
  }
  const bool far = watch_.glance(seconds, wire);
  // A dense step before its time: only where none has been taken on account.
  if (watch_.recovers() && next_dense_ <= step_ + watch_.dense_every()) suspects_ = true;
  if (!far) return;
  note("check", {}, watch_.expected(), watch_.glanced(), "off what was expected by more than half");
  alarm("steps do not take what they should");
}

void Guard::agree_on(std::span<double> seconds) {
  if (!seconds.empty()) ranks_.max(seconds);
  control_bytes_ += seconds.size_bytes();
}

// Steps are held against dense ones, and against what was expected of them.
void Guard::end_window() {
  using Verdict = GuardWatch::Verdict;
  using Levels = GuardWatch::Levels;
  const std::optional<GuardWatch::Window> window = watch_.end_window(all_dense(in_force_) ? Levels::kDense
                                                                     : in_force_ == may_  ? Levels::kStrongest
                                                                                          : Levels::kSome,
                                                                     check_.longer());
  window_steps_ = 0;
  if (!window) return;
  const bool retry = (window->verdict == Verdict::kAsExpected || window->verdict == Verdict::kDrifts) &&
                     retry_at_ >= 0 && step_ >= retry_at_;
  if (window->first || retry || window->verdict != Verdict::kAsExpected)
    note("check", {}, window->expected, window->measured,
         retry                                          ? "time for another attempt"
         : window->verdict == Verdict::kSlowerThanDense ? "slower than dense steps"
         : window->verdict == Verdict::kOff             ? "off what was expected by more than a tenth"
         : window->verdict == Verdict::kStillPays
             ? "off what was expected by more than a tenth, and far shorter than dense steps"
         : window->verdict == Verdict::kDrifts
             ? "off what was expected by more than a tenth; another window will tell"
             : "as expected");
  if (window->verdict == Verdict::kSlowerThanDense) return fall_back();
  if (window->verdict == Verdict::kOff || retry) {
    if (!retry) {
      before_drift_ = in_force_;
      evidence_.clear();
    }
    return start_probe(retry ? "time for another attempt" : "steps do not take what they should");
  }
  // More dense steps, which cost nothing where others are slower, and tell where dense ones may be shorter by now.
  if (watch_.doubts() || window->verdict == Verdict::kStillPays) next_dense_ = step_;
}

void Guard::fall_back() {
  const std::vector<int> levels(may_.size(), kDense);
  note("fall back", levels, kUnknown, watch_.dense().value,
       "steps are slower than dense ones by more than 2 %");
  for (std::string& reason : reasons_) reason = "dense: compressed steps were slower";
  put(levels);
  fell_back_ = true;
  retry_at_ = step_ + wait_;
  wait_ = std::min(2 * wait_, kLongestWait);
  expect(watch_.dense().value);
}

void Guard::put(const std::vector<int>& levels, bool plain) {
  exchange_.set_plain(plain);
  if (plain) return;
  bool changed = false;
  for (std::size_t i = 0; i < levels.size(); ++i) changed = changed || levels[i] != exchange_.level(i);
  in_force_ = levels;
  if (changed) exchange_.set_levels(levels);
}

void Guard::note(std::string event, std::vector<int> levels, double predicted, double measured,
                 std::string reason, double simulated) {
  if (ranks_.rank() != 0) return;
  const auto ms = [](double seconds) {
    return std::isfinite(seconds) ? std::optional(1e3 * seconds) : std::nullopt;
  };
  events_.push_back({step_, std::move(event), std::move(levels), ms(predicted), ms(measured),
                     std::move(reason), ms(simulated)});
}

void Guard::save_state(const StateWriter& state) const {
  state.put("step", step_);
  state.put("levels", std::vector<std::int64_t>(in_force_.begin(), in_force_.end()));
  state.put("plain", exchange_.plain());
  state.put("control_bytes", control_bytes_);
  Json events = Json::array();
  for (const GuardEvent& event : events_) events.push_back(to_json(event));
  state.put("events", events.dump());
}

void Guard::load_state(const StateReader& state) {
  state.get("step", step_);
  std::vector<std::int64_t> levels;
  state.get("levels", levels, may_.size());
  for (std::size_t i = 0; i < levels.size(); ++i)
    if (levels[i] < kDense || levels[i] > may_[i])
      throw Error("state with level " + std::to_string(levels[i]) + " in force, expected at most " +
                  std::to_string(may_[i]));
  if (verdict_ && verdict_->compress == all_dense({levels.begin(), levels.end()}))
    throw Error(std::string("state of a run that its profile made ") +
                (verdict_->compress ? "plain" : "compress") + ", but " + verdict_->reason +
                ", expected the profile and the number of workers that it began with");
  bool plain = false;
  state.get("plain", plain);
  state.get("control_bytes", control_bytes_);
  std::string text;
  state.get("events", text);
  events_.clear();
  for (const Json& event : Json::parse(text)) from_json(event, events_.emplace_back());
  phase_ = Phase::kSettling;
  retry_at_ = -1;
  while (replayed_ < recorded_.size() && recorded_[replayed_].step <= step_) ++replayed_;
  put({levels.begin(), levels.end()});
  if (replays_) return exchange_.set_plain(plain);
  if (verdict_) return;  // It watches nothing.
  // What was watched is not kept; in a replay of this run, a plain step that was to come is not plain any more.
  note("go on", in_force_, kUnknown, kUnknown, "from a checkpoint, watching anew");
}

}  // namespace accordion
