#include "accordion/adapt/control.h"

#include <gtest/gtest.h>

namespace accordion {
namespace {

std::vector<int> levels_of(const std::string& plan, int epochs) {
  const auto controller = make_schedule(parse_plan(plan), 1);
  std::vector<int> levels = {controller->first().levels[0]};
  for (int e = 0; e + 1 < epochs; ++e) levels.push_back(controller->decide({e, 1, 1, {}}).levels[0]);
  return levels;
}

TEST(Plan, HoldsFromTheFirstEpochUpToTheEnd) {
  EXPECT_EQ(levels_of("mild@1-3,strong", 5), (std::vector{1, 0, 0, 1, 1}));
  EXPECT_EQ(levels_of("strong@0-1,strong@3-4,mild", 5), (std::vector{1, 0, 0, 1, 0}));
  EXPECT_EQ(levels_of("strong", 3), (std::vector{1, 1, 1}));
}

TEST(Plan, HasThePapersPresets) {
  const auto critical = levels_of("critical", 300), inverse = levels_of("inverse", 300);
  for (int e = 0; e < 300; ++e) {
    const bool mild = e < 20 || (e >= 150 && e < 160);
    EXPECT_EQ(critical[static_cast<std::size_t>(e)], mild ? 0 : 1) << e;
    EXPECT_EQ(inverse[static_cast<std::size_t>(e)], mild ? 1 : 0) << e;
  }
}

TEST(Plan, RefusesWhatItCannotRead) {
  for (const char* plan : {"", "weak", "mild@0-20", "mild@20,strong", "mild@5-5,strong", "mild@-1-3,strong",
                           "mild@a-b,strong", "mild,strong", "mild@1-2,,strong"})
    EXPECT_THROW(parse_plan(plan), UsageError) << plan;
}

TEST(ControlOptions, RefuseWhatContradicts) {
  const auto refuses = [](ControlOptions options, const char* expected) {
    try {
      control_levels("train", options);
      ADD_FAILURE() << "accepted, expected: " << expected;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  };
  refuses({.mild = "topk"}, "mild and strong are for a controller");
  refuses({.controller = "accordion", .mild = "topk"}, "expects mild and strong");
  refuses({.codec = "topk", .controller = "accordion", .mild = "none", .strong = "topk"},
          "beside controller=accordion");
  refuses({.controller = "accordion", .mild = "none", .strong = "dgc"},
          "expected dgc in all levels or in none");
  refuses({.controller = "schedule", .mild = "none", .strong = "topk", .plan = "x"}, "plan=x");
  EXPECT_EQ(
      control_levels("train", {.controller = "accordion", .mild = "fp16", .strong = "powersgd:approx-rank=1"})
          .size(),
      2u);
  EXPECT_EQ(control_levels("train", {.codec = "topk"}).size(), 1u);
}

}  // namespace
}  // namespace accordion
