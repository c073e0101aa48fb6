#include "accordion/adapt/controllers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "accordion/adapt/control.h"

namespace accordion {
namespace {

TEST(Controllers, AnUnknownNameIsRefusedWhereverItIsUsed) {
  const ControlOptions options{.controller = "smyth"};
  EXPECT_THROW(make_controller(options, 1, 1), UsageError);
  EXPECT_THROW(control_levels("train", options, 1), UsageError);
  EXPECT_THROW(check_control("train", options), UsageError);
  EXPECT_THROW(find_controller(""), UsageError);
}

TEST(Controllers, EachSaysWhatItIs) {
  for (const ControllerKind& kind : controllers()) {
    EXPECT_FALSE(kind.help.empty()) << kind.name;
    EXPECT_TRUE(kind.make) << kind.name;
    EXPECT_EQ(kind.levels == TakesLevels::kOwn, static_cast<bool>(kind.own_levels)) << kind.name;
  }
}

// Every second window strong, whatever it is shown.
class Alternating final : public Controller {
 public:
  explicit Alternating(std::size_t layers) : layers_(layers) {}

  Needs needs() const override { return {.norms = false}; }
  Decision first() override { return uniform_decision(layers_, 0, "even"); }
  Decision decide(const Observation& seen) override {
    const bool even = (seen.window + 1) % 2 == 0;
    return uniform_decision(layers_, even ? 0 : 1, even ? "even" : "odd");
  }

 private:
  std::size_t layers_;
};

ControllerKind alternating() {
  return {.name = "alternating",
          .help = "mild and strong by turns",
          .levels = TakesLevels::kBetween,
          .make = [](const ControlOptions&, std::size_t layers, int) {
            return std::make_unique<Alternating>(layers);
          }};
}

TEST(Controllers, TakeOneFromOutside) {
  const ControlOptions options{.controller = "alternating", .mild = "none", .strong = "topk"};
  EXPECT_THROW(check_control("train", options), UsageError);
  add_controller(alternating());
  EXPECT_THROW(add_controller(alternating()), UsageError) << "twice";
  check_control("train", options);
  EXPECT_EQ(control_levels("train", options, 1).size(), 2u);
  const auto controller = make_controller(options, 3, 2);
  EXPECT_EQ(controller->first().levels, (std::vector{0, 0, 0}));
  EXPECT_EQ(controller->decide({.window = 0}).levels, (std::vector{1, 1, 1}));

  // What is particular to it is asked of it.
  ControlOptions wrong = options;
  wrong.batch_mild = wrong.batch_strong = 64;
  EXPECT_THROW(check_control("train", wrong), UsageError);
  EXPECT_THROW(check_control("train", {.codec = "topk", .controller = "alternating"}), UsageError);
}

// What a controller decides, window by window, of gradients that stay as they are and lose nothing at any level, or of such as
// shrink and lose the more the stronger the level.
std::vector<Decision> decisions_of(Controller& controller, bool change) {
  constexpr std::size_t kLayers = 2, kLevels = 3;
  std::vector<Decision> decisions{controller.first()};
  for (int window = 0; window < 6; ++window) {
    const std::vector<double> norms(kLayers, change ? std::pow(0.25, window) : 1), squares(kLayers, 10);
    std::vector<std::vector<Trial>> trials(kLayers);
    for (std::vector<Trial>& layer : trials)
      for (std::size_t level = 0; level < kLevels; ++level)
        layer.push_back({change ? std::pow(10.0, level) : 1e-6, 100.0 / static_cast<double>(level + 1)});
    decisions.push_back(controller.decide(
        {.window = window, .lr = 0.1, .next_lr = 0.1, .norms = norms, .squares = squares, .trials = trials}));
  }
  return decisions;
}

TEST(Controllers, SayWhetherTheyLookAtGradients) {
  for (const ControllerKind& kind : controllers()) {
    const ControlOptions options{.controller = kind.name,
                                 .batch_mild = 8,
                                 .batch_strong = 16,
                                 .interval = 1,
                                 .plan = "mild@0-2,strong"};
    const auto still = kind.make(options, 2, 3), changing = kind.make(options, 2, 3);
    const bool differ = !std::ranges::equal(
        decisions_of(*still, false), decisions_of(*changing, true),
        [](const Decision& a, const Decision& b) { return a.levels == b.levels && a.batch == b.batch; });
    EXPECT_EQ(still->needs().gradients(), differ) << kind.name;
  }
}

}  // namespace
}  // namespace accordion
