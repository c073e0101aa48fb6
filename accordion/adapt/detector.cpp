#include "accordion/adapt/detector.h"

#include <cmath>
#include <limits>

#include "accordion/adapt/critical.h"
#include "accordion/base/options.h"

namespace accordion {

std::string percent_text(double fraction) {
  return number_text(std::round(1000 * fraction) / 10) + " %";
}

Detector::Detector(const AccordionRule& rule, std::size_t count, int phase)
    : rule_(rule),
      phase_(phase),
      norms_(count),
      detected_(count, {true, "the first " + rule.unit + "s are critical"}),
      verdicts_(detected_) {}

bool Detector::see(int window, double lr, double next_lr, std::span<const double> norms) {
  const int next = window + 1;
  const bool detects = window % rule_.interval == phase_;
  if (detects) {
    detect(window, norms);
    if (rule_.published) hold_until_ = window;
  }
  const double factor = rule_.published ? 1 : rule_.min_decay;
  if (next_lr < lr / factor) {
    const int hold = rule_.hold ? rule_.hold : rule_.interval;
    // As published, to the next detection: one window only if the rate falls just before it.
    hold_until_ = rule_.published ? std::numeric_limits<int>::max() : window + hold;
    fall_ = "learning rate falls at " + rule_.unit + " " + std::to_string(next);
  }
  verdicts_ = detected_;
  if (next <= hold_until_) verdicts_.assign(detected_.size(), {true, fall_});
  return detects;
}

void Detector::detect(int window, std::span<const double> norms) {
  const std::string since = " since " + rule_.unit + " " + std::to_string(window - rule_.interval) +
                            ", threshold " + percent_text(rule_.threshold);
  for (std::size_t i = 0; i < norms_.size(); ++i) {
    const double before = norms_[i], now = norms[i];
    norms_[i] = now;
    if (!compared_) {
      detected_[i] = {true, "nothing to compare the first norm with"};
    } else if (!comparable(before, now)) {
      detected_[i] = {true, std::isfinite(before) && std::isfinite(now) ? "the last norm was zero"
                                                                        : "a norm is not finite"};
    } else {
      const double change = relative_change(before, now);
      const std::string how = now == before
                                  ? "norm unchanged"
                                  : (now < before ? "norm fell " : "norm rose ") + percent_text(change);
      detected_[i] = {change >= rule_.threshold, how + since};
    }
  }
  compared_ = true;
}

}  // namespace accordion
