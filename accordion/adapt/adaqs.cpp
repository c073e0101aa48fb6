#include <algorithm>
#include <cmath>

#include "accordion/adapt/control.h"
#include "accordion/adapt/detector.h"

namespace accordion {
namespace {

// Starts with the strongest level and moves a layer one step milder when the ratio of its mean gradient to
// the deviation around it has fallen to `threshold` of what it was at the last move. (Guo et al.,
// "Accelerating distributed deep learning by adaptive gradient quantization", 2020.)
class AdaQs final : public Controller {
 public:
  AdaQs(double threshold, std::size_t layers, int levels)
      : threshold_(threshold),
        reference_(layers, -1),
        now_(uniform_decision(layers, levels - 1, "starts with the strongest level")) {}

  Needs needs() const override { return {.squares = true}; }

  Decision first() override { return now_; }

  Decision decide(const Observation& seen) override {
    for (std::size_t i = 0; i < reference_.size(); ++i)
      look_at(i, seen.norms[i], seen.squares[i], static_cast<double>(seen.steps));
    ++windows_;
    return now_;
  }

  // One level milder at a time, and the first window is only what others are compared with.
  bool may_choose(std::size_t layer, int level) const override {
    return level >= now_.levels[layer] - std::max(0, windows_ - 1);
  }

 private:
  void look_at(std::size_t i, double norm, double squares, double steps) {
    const double mean = norm / steps;
    const double variance = squares / steps - mean * mean;
    if (!(variance > 0) || !std::isfinite(variance)) return;  // No spread to compare the mean with.
    const double ratio = mean / std::sqrt(variance);
    const double reference = reference_[i];
    if (reference >= 0 && ratio > threshold_ * reference) return;
    reference_[i] = ratio;
    if (reference < 0) return;  // The first: what later ones are compared with.
    const bool mildest = now_.levels[i] == 0;
    now_.levels[i] = std::max(0, now_.levels[i] - 1);
    now_.reasons[i] = "mean over deviation fell from " + number_text(rounded(reference)) + " to " +
                      number_text(rounded(ratio)) + ", threshold " + percent_text(threshold_) +
                      (mildest ? ", and the level is the mildest" : "");
  }

  static double rounded(double value) { return std::round(1e4 * value) / 1e4; }

  double threshold_;
  std::vector<double> reference_;  // At the last move; below 0: none yet.
  Decision now_;
  int windows_ = 0;  // That were seen.
};

}  // namespace

ControllerKind adaqs_controller() {
  return {.name = "adaqs",
          .help = "strong at first, milder each time mean over deviation falls to a threshold",
          .levels = TakesLevels::kLadder,
          .make = [](const ControlOptions& options, std::size_t layers, int levels) {
            return std::make_unique<AdaQs>(options.threshold, layers, levels);
          }};
}

}  // namespace accordion
