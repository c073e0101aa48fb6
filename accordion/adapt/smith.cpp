#include <algorithm>
#include <cmath>

#include "accordion/adapt/accordion.h"

namespace accordion {
namespace {

// Where the schedule divides the learning rate, the batch grows by that factor instead, up to batch.strong.
// The rate follows the batch, so that rate over batch is the schedule's. (Smith et al., "Don't decay the
// learning rate, increase the batch size", 2018.)
class Smith final : public Controller {
 public:
  Smith(const BatchRange& batch, std::size_t layers)
      : range_(batch), wanted_(static_cast<double>(batch.mild)), batch_(batch.mild), layers_(layers) {}

  Needs needs() const override { return {.norms = false}; }

  Decision first() override { return decision(); }

  Decision decide(const Observation& seen) override {
    if (seen.next_lr < seen.lr && seen.next_lr > 0) {
      const double factor = seen.lr / seen.next_lr;
      wanted_ = std::min(wanted_ * factor, static_cast<double>(range_.strong));
      grow(factor);
    }
    return decision();
  }

 private:
  // In whole multiples of the first batch, which ranks can share evenly as they did that one. The rate
  // follows the batch there is, so what is rounded off here the rate makes up for.
  void grow(double factor) {
    constexpr double kRounding = 1e-9;  // 0.1 / 0.01 is not quite 10.
    const auto multiple =
        static_cast<std::int64_t>(std::floor(wanted_ / static_cast<double>(range_.mild) * (1 + kRounding)));
    const std::int64_t before = batch_;
    batch_ = wanted_ >= static_cast<double>(range_.strong) ? range_.strong
                                                           : std::max(batch_, multiple * range_.mild);
    const std::string divided =
        "the schedule divides the rate by " + number_text(std::round(100 * factor) / 100);
    reason_ = batch_ == before          ? divided + ", the batch stays"
              : batch_ == range_.strong ? divided + ", the batch grows to its limit"
                                        : divided + ", the batch grows instead";
  }

  Decision decision() const {
    Decision result = uniform_decision(layers_, 0, "static");
    result.batch = batch_;
    result.batch_reason = reason_;
    return result;
  }

  BatchRange range_;
  double wanted_;  // By the schedule, were samples divisible; falls too small for a whole multiple add up.
  std::int64_t batch_;
  std::size_t layers_;
  std::string reason_ = "the first batch";
};

}  // namespace

ControllerKind smith_controller() {
  return {.name = "smith",
          .help = "the batch grows where the schedule divides the learning rate",
          .levels = TakesLevels::kOne,
          .batch = SetsBatch::kAlways,
          .make = [](const ControlOptions& options, std::size_t layers, int) {
            return std::make_unique<Smith>(BatchRange{options.batch_mild, options.batch_strong}, layers);
          }};
}

}  // namespace accordion
