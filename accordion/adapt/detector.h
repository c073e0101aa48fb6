// Finds critical learning regimes: where a gradient norm changes fast from one detection to the next, and the
// time after the learning rate falls. (Agarwal et al., "Accordion: Adaptive Gradient Communication via
// Critical Learning Regime Identification", 2021.)
#pragma once

#include <span>
#include <string>
#include <vector>

namespace accordion {

struct AccordionRule {
  int interval = 10;           // Windows between detections.
  double threshold = 0.5;      // Relative change of the norm that is critical.
  double min_decay = 1.5;      // A rate that falls by more than this factor is a decay.
  int hold = 0;                // Windows that are critical after one; 0: an interval.
  bool published = false;      // Any fall of the rate is a decay, and lasts only until the next detection.
  std::string unit = "epoch";  // What reasons call a window.
};

struct Verdict {
  bool critical;
  std::string reason;
};

class Detector {
 public:
  // One verdict for each of `count` norms. Detects at the windows that leave `phase` when divided by the
  // interval.
  Detector(const AccordionRule& rule, std::size_t count, int phase = 0);

  const std::vector<Verdict>& verdicts() const { return verdicts_; }

  // Takes the end of a window: the verdicts are then about the next one. True when it was a detection.
  bool see(int window, double lr, double next_lr, std::span<const double> norms);

 private:
  void detect(int window, std::span<const double> norms);

  AccordionRule rule_;
  int phase_;
  bool compared_ = false;          // Whether there is an earlier detection.
  std::vector<double> norms_;      // At the last detection,
  std::vector<Verdict> detected_;  // and what it found.
  // All is critical up to this window, whatever was detected: the rate fell.
  int hold_until_ = -1;
  std::string fall_;
  std::vector<Verdict> verdicts_;
};

// "62.5 %"
std::string percent_text(double fraction);

}  // namespace accordion
