#include "accordion/adapt/replay.h"

#include <algorithm>

namespace accordion {
namespace {

class Replay final : public Controller {
 public:
  explicit Replay(std::vector<Decision> decisions) : decisions_(std::move(decisions)) {}

  Needs needs() const override { return {.norms = false}; }

  Decision first() override { return decisions_.front(); }
  Decision decide(const Observation& seen) override {
    const auto next = static_cast<std::size_t>(seen.window) + 1;
    return decisions_[std::min(next, decisions_.size() - 1)];
  }

 private:
  std::vector<Decision> decisions_;
};

}  // namespace

std::unique_ptr<Controller> make_replay(std::vector<Decision> decisions) {
  return std::make_unique<Replay>(std::move(decisions));
}

}  // namespace accordion
