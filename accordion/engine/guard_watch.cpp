#include "accordion/engine/guard_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace accordion {
namespace {

constexpr std::size_t kEnough = 6;  // Steps whose median has an interval.
constexpr double kSlower = 1.02;    // Than dense steps: too slow.
constexpr double kDrift = 0.1;      // Off what was expected.
constexpr double kFar = 1.5;      // Times or parts of what was expected: steps uneven by a quarter are usual.
constexpr double kShort = 0.75;   // Of what dense steps took.
constexpr double kQuicker = 1.5;  // Times as fast: messages that are have another network.
constexpr int kMostPatience = 4;
constexpr int kGlance = 10;              // Steps,
constexpr double kGlanceSeconds = 0.12;  // and time: ranks agree in half a millisecond or so.
constexpr std::int64_t kDenseEvery = 150, kFreshDenseEvery = 15;
constexpr std::size_t kDenseKept = 30;  // The last ones.
constexpr double kDenseShare =
    0.009;  // Of the time, for single dense steps: that is a hundredth where they are uneven.

}  // namespace

void GuardWatch::probed(std::vector<double> dense) {
  dense_ = std::move(dense);
  short_.clear();
  last_dense_ = dense_before_ = 0;
}

void GuardWatch::expect(double seconds) {
  expected_ = seconds;
  checked_ = doubts_ = false;
  far_ = drifting_ = 0;
  window_.clear();
  wire_ = std::numeric_limits<double>::quiet_NaN();
  wire_window_.clear();
  recovers_ = false;
  older_ = dense_.size();
}

int GuardWatch::glance_steps() const {
  if (!(expected_ > 0)) return kGlance;
  return static_cast<int>(std::clamp<double>(std::ceil(kGlanceSeconds / expected_), kGlance, kWindow));
}

bool GuardWatch::glance(std::span<const double> seconds, std::span<const double> wire) {
  window_.insert(window_.end(), seconds.begin(), seconds.end());
  wire_window_.insert(wire_window_.end(), wire.begin(), wire.end());
  if (wire.size() >= kEnough) {
    const double now = median_of({wire.begin(), wire.end()}).value;
    if (kQuicker * now < wire_) wire_ = now, recovers_ = true;
  }
  glanced_ = median_of({seconds.begin(), seconds.end()}).value;
  const bool far = std::isfinite(expected_) && seconds.size() >= kEnough &&
                   (glanced_ > kFar * expected_ || kFar * glanced_ < expected_);
  far_ = far ? far_ + 1 : 0;
  if (far_ < patience_) return false;
  // Off again right after a probe: the window's end says whether that is what is to be expected.
  if (!checked_ && surprises_ > 0) return false;
  surprises_ = checked_ ? 0 : 1;
  return true;
}

std::optional<GuardWatch::Window> GuardWatch::end_window(Levels levels, const Longer& longer) {
  if (window_.size() < kEnough) return std::nullopt;
  if (const double wire = median_of(std::exchange(wire_window_, {})).value;
      wire > 0 && !(wire <= wire_ * kQuicker))
    wire_ = wire;
  const bool compressed = levels != Levels::kDense;
  const Median now = median_of(std::exchange(window_, {}));
  // By its interval a little, or by itself a lot: a window in which the network changed is half of each.
  const double off = std::abs(now.value / expected_ - 1);
  const bool drifts = std::isfinite(expected_) && (now.low > (1 + kDrift) * expected_ ||
                                                   now.high < (1 - kDrift) * expected_ || off > 2.5 * kDrift);
  // A model that is off twice in a row is off for good: then what was measured is what is expected.
  surprises_ = drifts && !checked_ ? surprises_ + 1 : 0;
  drifting_ = drifts ? drifting_ + 1 : 0;
  Window window{Verdict::kAsExpected, expected_, now.value, !checked_};
  if (compressed && longer.low > 1 && longer.value > kSlower)
    window.verdict = Verdict::kSlowerThanDense;
  else if (drifts && surprises_ < 2) {
    const bool settled = nothing_else_to_choose(levels, now.value);
    const int patience = settled ? 2 : window_patience_;
    window.verdict = drifting_ < patience ? Verdict::kDrifts : settled ? Verdict::kStillPays : Verdict::kOff;
  }
  if (window.verdict == Verdict::kSlowerThanDense || window.verdict == Verdict::kOff) return window;

  // Slower, it seems, but by too few dense steps to say so.
  doubts_ = compressed && longer.value > kSlower;
  if (window.verdict == Verdict::kStillPays || (!checked_ && !(off > kDrift && surprises_ == 0))) {
    checked_ = true;  // From here on against what was measured.
    expected_ = now.value;
    drifting_ = 0;
  }
  return window;
}

// Steps that have become longer might be shorter at a stronger level.
bool GuardWatch::nothing_else_to_choose(Levels levels, double seconds) const {
  if (levels == Levels::kDense || dense_.size() < kEnough) return false;
  return (levels == Levels::kStrongest || seconds < expected_) && dense().low > kFar * seconds;
}

// A longer one tells nothing that counts: where dense steps alone have become slower, what is in force pays all the more.
bool GuardWatch::see_dense(double seconds) {
  dense_before_ = std::exchange(last_dense_, seconds);
  short_.push_back(seconds);
  if (seconds < kShort * dense().value) return short_.size() > static_cast<std::size_t>(patience_);
  dense_.insert(dense_.end(), short_.begin(), short_.end());
  short_.clear();
  // Those since the decision, among the steps that they are compared with, say more than those before it.
  std::size_t gone = dense_.size() > kDenseKept ? dense_.size() - kDenseKept : 0;
  if (dense_.size() - older_ >= kEnough) gone = std::max(gone, older_);
  dense_.erase(dense_.begin(), dense_.begin() + static_cast<std::ptrdiff_t>(gone));
  older_ -= std::min(older_, gone);
  return false;
}

std::int64_t GuardWatch::dense_every() const {
  // A single long one may be anything.
  const double lately = std::min(last_dense_, dense_before_);
  const double slower = std::max(dense().value, lately) / std::max(expected_, 1e-9) - 1;
  return std::max(older_ > 0 ? kFreshDenseEvery : kDenseEvery,
                  static_cast<std::int64_t>(std::ceil(std::max(0.0, slower) / kDenseShare)));
}

void GuardWatch::heeded(bool for_nothing) {
  patience_ = for_nothing ? std::min(2 * patience_, kMostPatience) : 1;
}

void GuardWatch::heeded_window(bool for_nothing) {
  window_patience_ = for_nothing ? std::min(2 * window_patience_, kMostPatience) : 1;
}

}  // namespace accordion
