#include "accordion/adapt/control.h"

#include <gtest/gtest.h>

#include "accordion/adapt/schedule.h"
#include "accordion/base/json.h"

namespace accordion {
namespace {

std::vector<int> levels_of(const std::string& plan, int epochs) {
  const auto controller = make_controller({.controller = "schedule", .plan = plan}, 1, 2);
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
                           "mild@a-b,strong", "mild,strong", "mild@1-2,,strong", "2", "-1", "0@1-2,7"})
    EXPECT_THROW(parse_plan(plan, 2), UsageError) << plan;
}

TEST(Plan, TakesLevelsByNumber) {
  const Schedule plan = parse_plan("0@0-2,2@2-4,1", 3);
  EXPECT_EQ(plan.intervals[1].level, 2);
  EXPECT_EQ(plan.otherwise, 1);
  EXPECT_EQ(parse_plan("strong", 3).otherwise, 2);
}

TEST(ControlOptions, RefuseWhatContradicts) {
  const auto refuses = [](ControlOptions options, const char* expected) {
    try {
      check_control("train", options);
      ADD_FAILURE() << "accepted, expected: " << expected;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  };
  refuses({.controller = "acordion", .mild = "none", .strong = "topk"}, "did you mean \"accordion\"?");
  refuses({.mild = "topk", .strong = "topk"}, "has one codec, expected codec instead of mild");
  refuses({.mild = "topk"}, "expects mild and strong");
  refuses({.controller = "accordion", .mild = "topk"}, "expects mild and strong");
  refuses({.controller = "accordion"}, "expects mild and strong");
  refuses({.controller = "accordion", .mild = "none", .strong = "topk", .levels = "none;topk"},
          "or levels=A;B;C");
  refuses({.codec = "topk", .controller = "accordion", .mild = "none", .strong = "topk"},
          "beside controller=accordion");
  refuses({.controller = "accordion", .mild = "none", .strong = "dgc"},
          "expected dgc in all levels or in none");
  refuses({.controller = "schedule", .mild = "none", .strong = "topk", .plan = "x"}, "plan=x");
  refuses({.controller = "adaqs", .mild = "none", .strong = "topk"}, "expected levels=A;B;C");
  refuses({.controller = "adaqs", .mild = "topk:keep=0.01", .strong = "topk:keep=0.1"},
          "expected levels=A;B;C");
  refuses({.controller = "auto"}, "expects a codec to choose settings of");
  refuses({.codec = "fp16", .controller = "auto"}, "expected levels=A;B;C");
  refuses({.codec = "fp16", .controller = "rethink"}, "makes its own levels");
  refuses({.controller = "smith"}, "expects batch-mild and batch-strong");
  refuses({.controller = "smith", .batch_mild = 64, .batch_strong = 32},
          "the strong one at least the mild one");
  refuses({.controller = "smith", .batch_strong = 32}, "the strong one at least the mild one");
  refuses({.batch_mild = 64, .batch_strong = 128}, "expected accordion, joint or smith");
  refuses({.controller = "accordion", .mild = "none", .strong = "topk", .batch_mild = 1, .batch_strong = 2},
          "or controller=joint for both");
  refuses({.controller = "accordion", .batch_mild = 64, .batch_strong = 128, .window = 5},
          "for whole epochs");
  refuses({.codec = "topk", .controller = "auto", .norms = "aggregated"}, "expected local");
  refuses({.controller = "accordion", .batch_strong = 128}, "the strong one at least the mild one");
  refuses({.controller = "lgreco", .levels = "none;topk", .uniform = 2}, "expected a level from 0 to 1");
}

std::vector<std::string> texts(const ControlOptions& options, std::size_t parameters = 1000) {
  check_control("train", options);
  std::vector<std::string> result;
  for (const CodecOptions& level : control_levels("train", options, parameters))
    result.push_back(codec_text(level));
  return result;
}

TEST(ControlOptions, NameTheLevels) {
  EXPECT_EQ(texts({.codec = "fp16"}),
            texts({.codec = "fp16", .controller = "smith", .batch_mild = 8, .batch_strong = 8}));
  EXPECT_EQ(texts({.controller = "accordion", .mild = "fp16", .strong = "powersgd:approx-rank=1"}).size(),
            2u);
  EXPECT_EQ(texts({.controller = "accordion", .levels = "none;fp16;topk"}).size(), 3u);
  EXPECT_EQ(texts({.codec = "bf16", .controller = "accordion", .batch_mild = 8, .batch_strong = 64}).size(),
            1u);
  EXPECT_EQ(
      texts({.controller = "joint", .mild = "none", .strong = "topk", .batch_mild = 8, .batch_strong = 64})
          .size(),
      2u);
}

TEST(ControlOptions, LevelsAreThePublishedOnesWhereThatIsAskedFor) {
  const auto published = [](const char* parity) {
    const auto levels = control_levels("train", {.codec = "topk", .parity = parity}, kAnyModel);
    return std::get<TopKOptions>(levels.at(0)).published;
  };
  EXPECT_TRUE(published("paper"));
  EXPECT_FALSE(published("none"));
}

TEST(ControlOptions, LaddersHalveFromMildToStrong) {
  const auto ranks =
      texts({.controller = "adaqs", .mild = "powersgd:approx-rank=8", .strong = "powersgd:approx-rank=1"});
  ASSERT_EQ(ranks.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(ranks[i], codec_text(PowerSgdOptions{.approx_rank = 8 >> i}));
  EXPECT_EQ(texts({.controller = "lgreco", .mild = "qsgd:bits=8", .strong = "qsgd:bits=2"}).size(), 3u);
  const auto shares = texts({.controller = "lgreco", .mild = "topk:keep=0.1", .strong = "topk:keep=0.01"});
  EXPECT_EQ(shares.size(), 5u) << "0.1, 0.05, 0.025, 0.0125, 0.01";
  EXPECT_EQ(shares.back(), codec_text(TopKOptions{.keep = 0.01}));
  EXPECT_EQ(texts({.codec = "powersgd", .controller = "auto"}).size(), 5u);
  EXPECT_EQ(texts({.codec = "topk", .controller = "auto"}).size(), 9u);
}

TEST(ControlOptions, ForAnotherControllerKeepWhatItTakes) {
  const ControlOptions joint{.controller = "joint",
                             .mild = "powersgd:approx-rank=4",
                             .strong = "powersgd:approx-rank=1",
                             .batch_mild = 8,
                             .batch_strong = 64,
                             .interval = 3};
  const ControlOptions fixed{.codec = "topk"};
  for (const ControllerKind& kind : controllers()) {
    const ControlOptions options = for_controller(joint, kind.name);
    EXPECT_EQ(options.controller, kind.name);
    EXPECT_EQ(options.interval, 3);
    EXPECT_NO_THROW(check_control("decide", options)) << kind.name;
  }
  EXPECT_EQ(to_json(for_controller(joint, "joint")), to_json(joint));
  EXPECT_EQ(for_controller(joint, "lgreco").mild, joint.mild);
  EXPECT_EQ(for_controller(joint, "accordion").batch_mild, 0) << "levels rather than batches";
  EXPECT_EQ(for_controller(joint, "smith").batch_strong, 64);
  EXPECT_EQ(for_controller(fixed, "auto").codec, "topk");
  EXPECT_EQ(for_controller(fixed, "rethink").codec, "none");
  EXPECT_THROW(check_control("decide", for_controller(fixed, "accordion")), UsageError) << "whose levels?";
  EXPECT_THROW(for_controller(fixed, "nobody"), UsageError);
}

// The published value for ResNet-18 on CIFAR-100.
TEST(ControlOptions, RethinkTakesItsThresholdFromTheExpectedDensity) {
  const auto levels = control_levels("train", {.controller = "rethink", .density = 0.001}, 11220132);
  EXPECT_NEAR(std::get<ThresholdOptions>(levels.at(0)).lambda, 4.72e-3, 0.005e-3);
  EXPECT_THROW(control_levels("decide", {.controller = "rethink"}, 0), UsageError);
}

}  // namespace
}  // namespace accordion
