#include "accordion/adapt/detector.h"

#include <cmath>

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
      verdicts_(count, {true, "the first " + rule.unit + "s are critical"}) {}

bool Detector::see(int window, double lr, double next_lr, std::span<const double> norms) {
  const bool detects = window % rule_.interval == phase_;
  if (detects) detect(window, norms);
  const double factor = rule_.published ? 1 : rule_.min_decay;
  if (next_lr < lr / factor) {
    const std::string where = rule_.unit + " " + std::to_string(window + 1);
    verdicts_.assign(verdicts_.size(), {true, "learning rate falls at " + where});
    // A fall just before a detection would otherwise be over after one window.
    if (!rule_.published) hold_until_ = window + (rule_.hold ? rule_.hold : rule_.interval);
  }
  return detects;
}

void Detector::detect(int window, std::span<const double> norms) {
  const std::string since = " since " + rule_.unit + " " + std::to_string(window - rule_.interval) +
                            ", threshold " + percent_text(rule_.threshold);
  for (std::size_t i = 0; i < norms_.size(); ++i) {
    const double before = norms_[i], now = norms[i];
    norms_[i] = now;
    if (window < hold_until_) continue;  // Critical already, and why is said.
    if (!compared_) {
      verdicts_[i] = {true, "nothing to compare the first norm with"};
    } else if (!comparable(before, now)) {
      verdicts_[i] = {true, std::isfinite(before) && std::isfinite(now) ? "the last norm was zero"
                                                                        : "a norm is not finite"};
    } else {
      const double change = relative_change(before, now);
      const std::string how = now == before
                                  ? "norm unchanged"
                                  : (now < before ? "norm fell " : "norm rose ") + percent_text(change);
      verdicts_[i] = {change >= rule_.threshold, how + since};
    }
  }
  compared_ = true;
}

}  // namespace accordion
