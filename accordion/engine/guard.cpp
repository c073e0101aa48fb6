#include "accordion/engine/guard.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "accordion/base/error.h"
#include "accordion/base/json.h"

namespace accordion {
namespace {

constexpr std::int64_t kDoubtEvery = 5, kLongestWait = 5000;

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
  if (retry_at_ >= 0) return;
  // Never stronger than it may be, whatever pays.
  const bool known = phase_ == Phase::kGuarding &&
                     std::all_of(costs_.tensors().begin(), costs_.tensors().end(), [&](int tensor) {
                       const auto i = static_cast<std::size_t>(tensor);
                       return costs_.knows(i, may_[i]);
                     });
  measured_.clear();
  if (known) return decide("the controller's levels have changed");
  if (phase_ != Phase::kSettling && compressible())
    return start_probe("the controller's levels have changed");
  phase_ = Phase::kSettling;
  note("decide", may_, kUnknown, kUnknown, "the controller's levels, until steps have been watched");
  put(may_);
}

void Guard::start_anew() {
  if (replays_ || verdict_) return;
  phase_ = Phase::kSettling;
  retry_at_ = -1;
  blocks_.clear();
  buckets_.clear();
  before_alarm_.reset();
  before_drift_.reset();
  if (!exchange_.plain()) return;
  note("go on", in_force_, kUnknown, kUnknown, "steps are not what they were");
  put(in_force_);
}

void Guard::end_step(const StepTrace& trace) {
  ++step_;
  if (replays_) return replay();
  if (verdict_) return;
  const bool same = same_buckets(trace);
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
  elsewhere_ = false;
  for (const BucketTrace& bucket : trace.buckets) {
    buckets.push_back(bucket.slices);
    elsewhere_ = elsewhere_ || bucket.elsewhere;
  }
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

bool Guard::compressible() const {
  for (std::size_t i = 0; i < may_.size(); ++i)
    if (may_[i] != kDense && !std::holds_alternative<NoneOptions>(levels_[static_cast<std::size_t>(may_[i])]))
      return true;
  return false;
}

// In force from the next step on: what pays of what may be, by what is known.
void Guard::decide(const std::string& why) {
  std::vector<std::int64_t> message(may_.size() + 1);
  if (ranks_.rank() == 0) {
    const double dense = watch_.dense().value;
    const std::vector<std::string> names = level_names(levels_);
    GuardChoice choice = elsewhere_ ? choose_probed(may_, measured_, dense, goal_, names)
                                    : choose(costs_, may_, measured_, dense, goal_, names);
    std::copy(choice.levels.begin(), choice.levels.end(), message.begin());
    message.back() = std::bit_cast<std::int64_t>(choice.seconds);
    reasons_ = std::move(choice.reasons);
  }
  ranks_.broadcast(std::as_writable_bytes(std::span(message)), 0);
  control_bytes_ += message.size() * sizeof message[0];
  const auto predicted = std::bit_cast<double>(message.back());
  message.pop_back();
  const std::vector<int> levels(message.begin(), message.end());
  note("decide", levels, predicted, watch_.dense().value, why);
  put(levels);
  if (before_alarm_) watch_.heeded(levels == *before_alarm_);
  if (before_drift_) watch_.heeded_window(levels == *before_drift_);
  before_alarm_.reset();
  before_drift_.reset();
  expect(predicted);
}

void Guard::expect(double seconds) {
  watch_.expect(seconds);
  recent_.clear();
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
    const double seconds = seconds_between(*trace.begin, trace.end);
    if (plain)
      see_dense(seconds);
    else
      recent_.push_back(seconds);
    if (all_dense(in_force_)) latest_.push_back(watched_step(trace, in_force_));
    if (latest_.size() > kBlock - 1) latest_.erase(latest_.begin());
  }
  if (phase_ != Phase::kGuarding) return;
  ++window_steps_;
  if (++recent_steps_ >= watch_.glance_steps() || window_steps_ >= GuardWatch::kWindow) glance();
  if (phase_ == Phase::kGuarding && window_steps_ >= GuardWatch::kWindow) end_window();
  if (phase_ != Phase::kGuarding || all_dense(in_force_)) return;
  if (step_ < next_dense_ && !watch_.suspects()) return;
  // One that comes early is paid for by the next, which comes later.
  next_dense_ = watch_.doubts() ? step_ + kDoubtEvery : std::max(next_dense_, step_) + watch_.dense_every();
  note("probe", std::vector<int>(may_.size(), kDense), kUnknown, kUnknown,
       watch_.suspects() ? "to see whether dense steps are shorter by now"
                         : "to know what a dense step takes by now");
  exchange_.set_plain(true);
}

// All ranks must hear of it at once: the next step may be dense as well, or a probe's.
void Guard::see_dense(double seconds) {
  agree_on(std::span(&seconds, 1));
  const double before = watch_.dense().value;
  if (!watch_.see_dense(seconds)) return;
  note("check", {}, before, seconds, "dense steps are shorter than they were by more than a quarter");
  alarm("dense steps are shorter than they were");
}

// Ranks agree on the last steps, which may be so far off that something must have changed.
void Guard::glance() {
  recent_steps_ = 0;
  agree_on(std::span(recent_));
  if (!watch_.glance(std::exchange(recent_, {}))) return;
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
                                                                                          : Levels::kSome);
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
    if (!retry) before_drift_ = in_force_;
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
                 std::string reason) {
  if (ranks_.rank() != 0) return;
  const auto ms = [](double seconds) {
    return std::isfinite(seconds) ? std::optional(1e3 * seconds) : std::nullopt;
  };
  events_.push_back(
      {step_, std::move(event), std::move(levels), ms(predicted), ms(measured), std::move(reason)});
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
