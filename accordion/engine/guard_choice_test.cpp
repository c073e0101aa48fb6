// What is decided, from steps that are made up.
#include "accordion/engine/guard_choice.h"

#include <gtest/gtest.h>

#include "accordion/comm/loopback.h"

namespace accordion {
namespace {

using perf::Goal;

const std::vector<TensorInfo> kTensors = {{"a", {{200, 100}}}, {"b", {{300, 100}}}};
const std::vector<CodecOptions> kLevels = {parse_codec("topk:keep=0.25"), parse_codec("topk:keep=0.01")};
const std::vector<int> kMay = {1, 1}, kPlain = {kDense, kDense}, kMild = {0, 0}, kStrong = {1, 1};

const std::vector<std::string> kNames = level_names(kLevels);

// Codecs take no time, and each tensor is a bucket.
struct Steps {
  double seconds_per_byte;
  std::vector<double> ready = {0.01, 0.02};
  bool mild_leaves_b = false;  // Dense.
};

WatchedStep step_of(const std::vector<int>& levels, const Steps& steps) {
  WatchedStep step{levels, 0, {}};
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double values = static_cast<double>(kTensors[at].shape.count());
    const bool dense = levels[at] == kDense || (levels[at] == 0 && i == 1 && steps.mild_leaves_b);
    const double bytes = values * (dense ? 4 : levels[at] == 0 ? 2 : 0.08);
    WatchedStep::Bucket& bucket = step.buckets.emplace_back();
    bucket.ready = steps.ready[at];
    const perf::Collective collective = dense ? perf::Collective::kSum : perf::Collective::kGather;
    bucket.messages = {{collective, bytes, 1e-4 + steps.seconds_per_byte * bytes}};
    if (!dense) bucket.layers = {{i, 0, collective, bytes, 0, 0}};
  }
  return step;
}

// Of two ranks that have watched all layers dense, mild and strong.
StepCosts costs_of(const Steps& steps) {
  std::optional<StepCosts> costs;
  run_loopback(1, [&](Communicator& comm) {
    const Exchange exchange(comm, kTensors, {.levels = kLevels});
    costs.emplace(exchange, 2);
  });
  const std::vector<WatchedStep> watched = {step_of(kPlain, steps), step_of(kMild, steps),
                                            step_of(kStrong, steps)};
  costs->learn(watched, {{{0, 0, kTensors[0].shape.count()}}, {{1, 0, kTensors[1].shape.count()}}});
  return *costs;
}

// Milliseconds of what was probed, strongest first, and of dense steps.
std::vector<Probed> probed(double strong, double mild, double dense = 0) {
  return {{kStrong, 1e-3 * strong, strong <= dense}, {kMild, 1e-3 * mild, mild <= dense}};
}

TEST(GuardChoice, FastestTakesTheMildestOfWhatIsAboutAsFast) {
  const StepCosts costs = costs_of({.seconds_per_byte = 1e-6});
  const auto chosen = [&](double dense, double strong, double mild) {
    const std::vector<int> whole =
        choose_probed(kMay, probed(strong, mild), 1e-3 * dense, Goal::kFastest, kNames).levels;
    EXPECT_EQ(choose(costs, kMay, probed(strong, mild), 1e-3 * dense, Goal::kFastest, kNames).levels, whole);
    return whole;
  };
  EXPECT_EQ(chosen(150, 100, 100.5), kMild);
  EXPECT_EQ(chosen(150, 100.5, 100), kMild);
  EXPECT_EQ(chosen(150, 100, 102), kStrong);
  EXPECT_EQ(chosen(150, 102, 100), kMild);
  EXPECT_EQ(chosen(100.9, 100, 100.5), kPlain);
  EXPECT_EQ(chosen(101.5, 100, 100.5), kMild) << "within 1 % of the shortest, not of dense";
}

// One layer's traffic is hidden: to send it strong makes no step shorter.
TEST(GuardChoice, FastestTakesAMilderMixtureThatIsAsFast) {
  const StepCosts costs = costs_of({.seconds_per_byte = 1e-6, .ready = {0.01, 0.2}});
  const GuardChoice choice = choose(costs, kMay, probed(203, 260), 0.32, Goal::kFastest, kNames);
  EXPECT_EQ(choice.levels, (std::vector{kDense, 1}));
  EXPECT_NEAR(choice.seconds, 0.203, 0.002);
}

// Of what is no slower than dense, the least traffic; whatever is faster.
TEST(GuardChoice, HarmlessTakesTheLeastTraffic) {
  const StepCosts costs = costs_of({.seconds_per_byte = 1e-6});
  for (const bool parts : {true, false}) {
    const auto chosen = [&](double dense, double strong, double mild) {
      const std::vector<Probed> steps = probed(strong, mild, dense);
      return (parts ? choose(costs, kMay, steps, 1e-3 * dense, Goal::kHarmless, kNames)
                    : choose_probed(kMay, steps, 1e-3 * dense, Goal::kHarmless, kNames))
          .levels;
    };
    EXPECT_EQ(chosen(150, 149, 100), kStrong);
    EXPECT_EQ(chosen(150, 151, 150), kMild);
    EXPECT_EQ(chosen(150, 151, 151), kPlain);
  }
}

// Steps took half as long again as their parts: what is foreseen will, too, also where what was probed may not be in force any more.
TEST(GuardChoice, WhatWasMeasuredIsBelievedWhenLevelsMayNotBeThatStrongAnyMore) {
  const StepCosts costs = costs_of({.seconds_per_byte = 1e-6, .ready = {0.01, 0.2}});
  const std::vector<int> may = {0, 1};
  const auto simulated = [&](const std::vector<int>& levels) {
    return perf::step_seconds(costs.model(kMay), levels);
  };
  const double dense = simulated(kPlain);
  for (const double factor : {1.0, 2.0}) {
    const std::vector<Probed> steps = {{kStrong, factor * simulated(kStrong), factor == 1}};
    const GuardChoice choice = choose(costs, may, steps, dense, Goal::kHarmless, kNames);
    EXPECT_EQ(choice.levels, factor == 1 ? may : kPlain) << factor;
    EXPECT_EQ(choose(costs, may, {}, dense, Goal::kHarmless, kNames).levels, may);
    EXPECT_EQ(choose(costs, may, {}, dense, Goal::kHarmless, kNames, false).levels, kPlain)
        << "nothing was probed";
  }
}

// What is foreseen to be a little better has to be tried out first.
TEST(GuardChoice, SaysWhatIsMerelyForeseen) {
  const StepCosts costs = costs_of({.seconds_per_byte = 1e-6, .ready = {0.01, 0.2}});
  const double dense = perf::step_seconds(costs.model(kMay), kPlain);
  EXPECT_FALSE(choose(costs, kMay, {}, dense, Goal::kHarmless, kNames).foreseen) << "a third shorter";
  const StepCosts hidden = costs_of({.seconds_per_byte = 1e-9});
  const double backward = perf::step_seconds(hidden.model(kMay), kPlain);
  EXPECT_TRUE(choose(hidden, kMay, {}, backward, Goal::kHarmless, kNames).foreseen);
  EXPECT_FALSE(choose(hidden, kMay, {{kStrong, backward, true}}, backward, Goal::kHarmless, kNames).foreseen);
}

// As a codec's mild setting does with a tensor that it would hardly shrink.
TEST(GuardChoice, ALevelThatLeavesALayerDenseCostsWhatDenseDoes) {
  const StepCosts costs = costs_of({.seconds_per_byte = 1e-6, .mild_leaves_b = true});
  const perf::StepModel model = costs.model(kMay);
  const perf::Timeline mild = perf::simulate(model, kMild),
                       mixed = perf::simulate(model, std::vector{0, kDense});
  EXPECT_EQ(mild.seconds, mixed.seconds);
  EXPECT_EQ(mild.wire_bytes, mixed.wire_bytes);
  // The stronger sends less; what the milder sends of b counts.
  const GuardChoice least = choose(costs, kMay, probed(150, 150, 200), 0.2, Goal::kHarmless, kNames);
  EXPECT_EQ(least.levels, kStrong);
  const GuardChoice fast = choose(costs, kMay, probed(192, 150), 0.2, Goal::kFastest, kNames);
  EXPECT_EQ(fast.levels, kMild);
  EXPECT_EQ(fast.reasons[1], "not worth compressing");
}

TEST(GuardChoice, ReasonsNameTheLevel) {
  EXPECT_EQ(kNames, (std::vector<std::string>{"mild", "strong"}));
  EXPECT_EQ(level_names(std::span(kLevels).first(1)), std::vector{codec_text(kLevels[0])});
  const StepCosts slow = costs_of({.seconds_per_byte = 1e-6}), fast = costs_of({.seconds_per_byte = 1e-12});
  const GuardChoice saves = choose(slow, kMay, probed(20, 90), 0.215, Goal::kFastest, kNames);
  EXPECT_EQ(saves.levels, kStrong);
  EXPECT_EQ(saves.reasons[1].rfind("strong: saves 1", 0), 0u) << saves.reasons[1];
  EXPECT_EQ(choose(fast, kMay, probed(21, 20, 20), 0.02, Goal::kHarmless, kNames).reasons[0],
            "mild: saves traffic at no cost");
  EXPECT_EQ(choose_probed(kMay, probed(31, 180, 180), 0.18, Goal::kHarmless, kNames).reasons[0],
            "strong: steps take 31.0 instead of 180 ms");
}

TEST(GuardChoice, ReasonsSayWhatWasMeasuredWhereItIsNotWhatWasForeseen) {
  const StepCosts slow = costs_of({.seconds_per_byte = 1e-6});
  for (const Goal goal : {Goal::kFastest, Goal::kHarmless}) {
    const GuardChoice choice = choose(slow, kMay, probed(160, 155), 0.15, goal, kNames);
    EXPECT_EQ(choice.levels, kPlain);
    EXPECT_EQ(choice.reasons[0], "dense: compressed steps were no shorter");
  }
  // All is hidden but b's 120 kB, of which a link of 1 GB/s makes 0.12 of 20 ms.
  const StepCosts fast = costs_of({.seconds_per_byte = 1e-9});
  const GuardChoice choice = choose(fast, kMay, probed(20.1, 20.15), 0.0202, Goal::kFastest, kNames);
  EXPECT_EQ(choice.levels, kPlain);
  EXPECT_EQ(choice.reasons[0], "dense: hidden behind backward");
  EXPECT_EQ(choose(fast, kMay, {}, 0.0202, Goal::kFastest, kNames).reasons[1],
            "dense: compressing it would save less than 1 %");
}

}  // namespace
}  // namespace accordion
