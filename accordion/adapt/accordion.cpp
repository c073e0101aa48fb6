#include <cmath>

#include "accordion/adapt/controller.h"
#include "accordion/base/options.h"

namespace accordion {
namespace {

std::string percent(double fraction) {
  return number_text(std::round(1000 * fraction) / 10) + " %";
}

class Accordion final : public Controller {
 public:
  Accordion(const AccordionRule& rule, std::size_t layers, int levels)
      : rule_(rule),
        strong_(levels - 1),
        norms_(layers),
        now_(all_mild(layers, "the first epochs are critical")) {}

  Decision first() override { return now_; }

  Decision decide(const Observation& seen) override {
    if (seen.epoch % rule_.interval == 0) detect(seen);
    const double factor = rule_.published ? 1 : rule_.min_decay;
    if (seen.next_lr < seen.lr / factor) {
      now_ = all_mild(norms_.size(), "learning rate falls at epoch " + std::to_string(seen.epoch + 1));
      // A fall just before a detection would otherwise be over after one epoch.
      if (!rule_.published) hold_until_ = seen.epoch + rule_.interval;
    }
    return now_;
  }

 private:
  static Decision all_mild(std::size_t layers, const std::string& reason) {
    return {std::vector<int>(layers), std::vector<std::string>(layers, reason)};
  }

  void detect(const Observation& seen) {
    for (std::size_t i = 0; i < norms_.size(); ++i) {
      const double before = norms_[i], now = seen.norms[i];
      norms_[i] = now;
      if (seen.epoch < hold_until_) continue;  // Mild already, and why is said.
      const bool comparable = seen.epoch > 0 && before != 0 && std::isfinite(before) && std::isfinite(now);
      const double change = comparable ? std::abs(before - now) / before : 0;
      now_.levels[i] = comparable && change < rule_.threshold ? strong_ : 0;
      now_.reasons[i] =
          comparable ? text(before, now, change, seen.epoch) : no_comparison(seen.epoch, before, now);
    }
  }

  std::string text(double before, double now, double change, int epoch) const {
    const std::string since =
        " since epoch " + std::to_string(epoch - rule_.interval) + ", threshold " + percent(rule_.threshold);
    if (now == before) return "norm unchanged" + since;
    return (now < before ? "norm fell " : "norm rose ") + percent(change) + since;
  }

  static std::string no_comparison(int epoch, double before, double now) {
    if (epoch == 0) return "nothing to compare the first norm with";
    return std::isfinite(before) && std::isfinite(now) ? "the last norm was zero" : "a norm is not finite";
  }

  AccordionRule rule_;
  int strong_;
  std::vector<double> norms_;  // At the last detection.
  Decision now_;
  int hold_until_ = 0;  // Mild, whatever is detected, up to this epoch.
};

}  // namespace

std::unique_ptr<Controller> make_accordion(const AccordionRule& rule, std::size_t layers, int levels) {
  return std::make_unique<Accordion>(rule, layers, levels);
}

}  // namespace accordion
