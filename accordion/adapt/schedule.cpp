#include "accordion/adapt/controllers.h"

namespace accordion {
namespace {

class Scheduled final : public Controller {
 public:
  Scheduled(const Schedule& schedule, std::size_t layers) : schedule_(schedule), layers_(layers) {}

  Decision first() override { return at(0); }
  Decision decide(const Observation& seen) override { return at(seen.window + 1); }

 private:
  Decision at(int window) const {
    int level = schedule_.otherwise;
    std::string reason = schedule_.name;
    for (const Interval& interval : schedule_.intervals)
      if (window >= interval.begin && window < interval.end) {
        level = interval.level;
        reason += ": " + schedule_.unit + "s " + std::to_string(interval.begin) + " to " +
                  std::to_string(interval.end - 1);
        break;
      }
    return uniform_decision(layers_, level, reason);
  }

  Schedule schedule_;
  std::size_t layers_;
};

}  // namespace

std::unique_ptr<Controller> make_schedule(const Schedule& schedule, std::size_t layers) {
  return std::make_unique<Scheduled>(schedule, layers);
}

}  // namespace accordion
