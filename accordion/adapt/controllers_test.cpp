#include "accordion/adapt/controllers.h"

#include <gtest/gtest.h>

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

TEST(Controllers, SayWhetherTheyLookAtGradients) {
  for (const ControllerKind& kind : controllers()) {
    const ControlOptions options{
        .controller = kind.name, .batch_mild = 8, .batch_strong = 16, .plan = "strong"};
    const bool looks = kind.make(options, 1, 2)->needs().gradients();
    const bool blind = kind.name == "static" || kind.name == "schedule" || kind.name == "smith" ||
                       kind.name == "rethink" || kind.name == "alternating";
    EXPECT_EQ(looks, !blind) << kind.name;
  }
}

}  // namespace
}  // namespace accordion
