#include "accordion/adapt/schedule.h"

#include "accordion/adapt/control.h"

namespace accordion {
namespace {

class Scheduled final : public Controller {
 public:
  Scheduled(Schedule schedule, std::string unit, std::size_t layers)
      : schedule_(std::move(schedule)), unit_(std::move(unit)), layers_(layers) {}

  Needs needs() const override { return {.norms = false}; }

  Decision first() override { return at(0); }
  Decision decide(const Observation& seen) override { return at(seen.window + 1); }

 private:
  Decision at(int window) const {
    int level = schedule_.otherwise;
    std::string reason = schedule_.name;
    for (const Interval& interval : schedule_.intervals)
      if (window >= interval.begin && window < interval.end) {
        level = interval.level;
        reason +=
            ": " + unit_ + "s " + std::to_string(interval.begin) + " to " + std::to_string(interval.end - 1);
        break;
      }
    return uniform_decision(layers_, level, reason);
  }

  Schedule schedule_;
  std::string unit_;  // What reasons call a window.
  std::size_t layers_;
};

}  // namespace

ControllerKind schedule_controller() {
  return {.name = "schedule",
          .help = "levels written down beforehand (plan)",
          .levels = TakesLevels::kBetween,
          .make = [](const ControlOptions& options, std::size_t layers, int levels) {
            return std::make_unique<Scheduled>(parse_plan(options.plan, levels), options.window_unit(),
                                               layers);
          }};
}

}  // namespace accordion
