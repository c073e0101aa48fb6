#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "accordion/adapt/accordion.h"
#include "accordion/adapt/replay.h"

namespace accordion {
namespace {

using Rates = std::vector<double>;

Rates constant(std::size_t n, double value = 1) {
  return Rates(n, value);
}

// The batch in force during each epoch, of a model with one layer.
std::vector<std::int64_t> batches(Controller& controller, const Rates& norms, const Rates& rates,
                                  const std::vector<std::int64_t>& steps) {
  std::vector<std::int64_t> result = {controller.first().batch};
  for (std::size_t e = 0; e + 1 < rates.size(); ++e)
    result.push_back(controller
                         .decide({.window = static_cast<int>(e),
                                  .lr = rates[e],
                                  .next_lr = rates[e + 1],
                                  .norms = {&norms[e], 1},
                                  .steps = steps[e]})
                         .batch);
  return result;
}

std::vector<std::int64_t> accordion_batches(const Rates& norms, const Rates& rates, int interval,
                                            const std::vector<std::int64_t>& steps = {}) {
  const auto controller = make_accordion_batch({.interval = interval}, {512, 4096}, 1);
  return batches(*controller, norms, rates,
                 steps.empty() ? std::vector<std::int64_t>(norms.size(), 98) : steps);
}

// What the published counts of data sent imply: 97 steps for 20 epochs, 12 for the other 280.
TEST(AccordionBatch, GrowsAfterExactlyTwoIntervals) {
  const auto got = accordion_batches(constant(300), constant(300), 10);
  for (std::size_t e = 0; e < 300; ++e) EXPECT_EQ(got[e], e < 20 ? 512 : 4096) << e;
}

TEST(AccordionBatch, StaysSmallWhileTheNormChanges) {
  Rates norms;
  for (int e = 0; e < 50; ++e) norms.push_back(e < 35 ? std::pow(0.9, e) : std::pow(0.9, 35));
  const auto got = accordion_batches(norms, constant(50), 10);
  for (std::size_t e = 0; e < 50; ++e) EXPECT_EQ(got[e], e < 40 ? 512 : 4096) << e;
}

TEST(AccordionBatch, NeverShrinks) {
  Rates norms = constant(60), rates = constant(60);
  for (std::size_t e = 25; e < 60; ++e) norms[e] = 100;
  for (std::size_t e = 40; e < 60; ++e) rates[e] = 0.1;
  const auto got = accordion_batches(norms, rates, 10);
  for (std::size_t e = 20; e < 60; ++e) EXPECT_EQ(got[e], 4096) << e;
}

TEST(AccordionBatch, WaitsAfterADecayBeforeItHasGrown) {
  Rates rates = constant(60);
  for (std::size_t e = 15; e < 60; ++e) rates[e] = 0.1;
  const auto got = accordion_batches(constant(60), rates, 10);
  for (std::size_t e = 0; e < 60; ++e) EXPECT_EQ(got[e], e < 25 ? 512 : 4096) << e;
}

// Sums over fewer steps are smaller without anything having happened to the gradients.
TEST(AccordionBatch, LooksAtTheNormPerStep) {
  std::vector<std::int64_t> steps(40, 100);
  Rates norms = constant(40, 100);
  for (std::size_t e = 15; e < 40; ++e) {
    steps[e] = 10;
    norms[e] = 10;
  }
  EXPECT_EQ(accordion_batches(norms, constant(40), 10, steps)[20], 4096);
}

RC_GTEST_PROP(AccordionBatchProperties, IsMonotone, ()) {
  const auto norms = *rc::gen::container<std::vector<double>>(
      40, rc::gen::map(rc::gen::inRange(1, 100), [](int x) { return x / 10.0; }));
  const auto got = accordion_batches(norms, constant(40), *rc::gen::inRange(1, 6));
  for (std::size_t e = 1; e < got.size(); ++e) RC_ASSERT(got[e] >= got[e - 1]);
}

TEST(Joint, ControlsBothEachByItsRule) {
  const AccordionRule rule{.interval = 10};
  const auto joint = make_controller({.controller = "joint", .batch_mild = 512, .batch_strong = 4096}, 2, 2);
  const auto levels = make_accordion(rule, 2, 2);
  const auto batch = make_accordion_batch(rule, {512, 4096}, 2);
  EXPECT_EQ(joint->first().batch, 512);
  std::int64_t steps = 100;
  for (int e = 0; e < 60; ++e) {
    const double per_step[] = {e < 25 ? 1.0 : 0.3, 2.0};
    const double summed[] = {per_step[0] * static_cast<double>(steps),
                             per_step[1] * static_cast<double>(steps)};
    const Decision both =
        joint->decide({.window = e, .lr = 1, .next_lr = 1, .norms = summed, .steps = steps});
    EXPECT_EQ(both.levels, levels->decide({.window = e, .lr = 1, .next_lr = 1, .norms = per_step}).levels)
        << e;
    EXPECT_EQ(both.batch,
              batch->decide({.window = e, .lr = 1, .next_lr = 1, .norms = summed, .steps = steps}).batch)
        << e;
    EXPECT_FALSE(both.batch_reason.empty());
    if (both.batch == 4096) steps = 12;  // As a run would have it from here on.
  }
}

std::vector<std::int64_t> smith_batches(const Rates& rates, BatchRange range) {
  const auto controller =
      make_controller({.controller = "smith", .batch_mild = range.mild, .batch_strong = range.strong}, 1, 1);
  return batches(*controller, constant(rates.size()), rates, std::vector<std::int64_t>(rates.size(), 1));
}

// 300 epochs: tenfold at 150, the limit reached; at 250 the rate falls instead.
TEST(Smith, GrowsTheBatchWhereTheRateWouldFall) {
  Rates rates = constant(300, 0.4);
  for (std::size_t e = 150; e < 300; ++e) rates[e] = e < 250 ? 0.04 : 0.004;
  const auto got = smith_batches(rates, {512, 5120});
  for (std::size_t e = 0; e < 300; ++e) {
    EXPECT_EQ(got[e], e < 150 ? 512 : 5120) << e;
    // The rate that runs is the schedule's times the batch over the first one.
    const double rate = rates[e] * static_cast<double>(got[e]) / 512;
    EXPECT_NEAR(rate, e < 250 ? 0.4 : 0.04, 1e-12) << e;
  }
}

TEST(Smith, GrowsAsFarAsItsLimit) {
  Rates rates = constant(40, 0.1);
  for (std::size_t e = 10; e < 40; ++e) rates[e] = e < 20 ? 0.02 : e < 30 ? 0.004 : 0.0008;
  const auto got = smith_batches(rates, {640, 5120});
  EXPECT_EQ(got[9], 640);
  EXPECT_EQ(got[10], 3200);
  EXPECT_EQ(got[20], 5120);
  EXPECT_EQ(got[39], 5120);
}

TEST(Smith, SmallFallsAddUp) {
  Rates rates;
  for (int e = 0; e < 40; ++e) rates.push_back(std::pow(0.9, e));
  const auto got = smith_batches(rates, {100, 1000});
  for (std::size_t e = 0; e < 40; ++e) {
    const double wanted = std::min(1000.0, 100 / rates[e]);
    EXPECT_LE(static_cast<double>(got[e]), wanted * (1 + 1e-6)) << e;
    EXPECT_GT(static_cast<double>(got[e]), wanted - 100 - 1e-6) << e;
    EXPECT_EQ(got[e] % 100, 0) << e;
  }
}

TEST(Smith, WarmUpLeavesTheBatchAlone) {
  const auto got = smith_batches({0.1, 0.2, 0.4, 0.4, 0.04}, {100, 1000});
  EXPECT_EQ(got, (std::vector<std::int64_t>{100, 100, 100, 100, 1000}));
}

// A layer's levels under AdaQS, given mean over deviation in each window. Four steps a window.
std::vector<int> adaqs_levels(const Rates& ratios, int levels, double threshold = 0.5) {
  const auto controller = make_controller({.controller = "adaqs", .threshold = threshold}, 1, levels);
  std::vector<int> result = {controller->first().levels[0]};
  for (std::size_t w = 0; w < ratios.size(); ++w) {
    // mean = ratio, variance = 1
    const double norm = 4 * ratios[w], squares = 4 * (1 + ratios[w] * ratios[w]);
    result.push_back(
        controller
            ->decide(
                {.window = static_cast<int>(w), .norms = {&norm, 1}, .steps = 4, .squares = {&squares, 1}})
            .levels[0]);
  }
  return result;
}

TEST(AdaQs, StartsStrongAndMovesOneLevelForEveryHalving) {
  EXPECT_EQ(adaqs_levels({1, 0.9, 0.51, 0.49, 0.49, 0.25, 0.24, 0.1}, 3),
            (std::vector{2, 2, 2, 2, 1, 1, 1, 0, 0}));
  EXPECT_EQ(adaqs_levels({1, 2, 4, 8}, 3), (std::vector{2, 2, 2, 2, 2})) << "growth is no reason";
  EXPECT_EQ(adaqs_levels({1, 0.5}, 2, 0.5).back(), 0) << "the threshold itself counts";
}

TEST(AdaQs, WithoutSpreadNothingChanges) {
  const auto controller = make_controller({.controller = "adaqs"}, 1, 2);
  const double norm = 4, squares = 4;  // Four equal gradients.
  for (int w = 0; w < 3; ++w)
    EXPECT_EQ(controller->decide({.window = w, .norms = {&norm, 1}, .steps = 4, .squares = {&squares, 1}})
                  .levels[0],
              1);
}

TEST(AdaQs, AsksForSquares) {
  EXPECT_TRUE(make_controller({.controller = "adaqs"}, 1, 2)->needs().squares);
  EXPECT_FALSE(make_accordion({}, 1, 2)->needs().squares);
}

std::unique_ptr<Controller> make_auto(double tolerance) {
  return make_controller({.controller = "auto", .interval = 1, .tolerance = tolerance}, 1, 3);
}

// Three levels that lose 0, 20 and 60 percent of the norm.
Decision auto_decision(Controller& controller, int window, double norm) {
  const std::vector<Trial> trials[] = {{{0, 100}, {0.04 * norm * norm, 10}, {0.36 * norm * norm, 1}}};
  return controller.decide({.window = window, .lr = 1, .next_lr = 1, .norms = {&norm, 1}, .trials = trials});
}

TEST(Auto, TakesTheStrongestLevelWithinTheTolerance) {
  const auto level = [](double tolerance) {
    const auto controller = make_auto(tolerance);
    EXPECT_TRUE(controller->needs().trials);
    EXPECT_EQ(controller->first().levels[0], 0);
    EXPECT_EQ(auto_decision(*controller, 0, 1).levels[0], 0) << "nothing to compare the first norm with";
    return auto_decision(*controller, 1, 1).levels[0];
  };
  EXPECT_EQ(level(0.1), 0);
  EXPECT_EQ(level(0.2), 1);
  EXPECT_EQ(level(0.5), 1);
  EXPECT_EQ(level(0.7), 2);
}

TEST(Auto, IsMildInCriticalRegimes) {
  const auto controller = make_auto(0.7);
  auto_decision(*controller, 0, 1);
  EXPECT_EQ(auto_decision(*controller, 1, 0.4).levels[0], 0);
  EXPECT_EQ(auto_decision(*controller, 2, 0.4).levels[0], 2);
  EXPECT_EQ(auto_decision(*controller, 3, 0.4).reasons[0],
            "norm unchanged since epoch 2, threshold 50 %; loses 60 %, tolerance 70 %");
}

TEST(Auto, IsMildWhereNoErrorCanBeMeasured) {
  const auto controller = make_auto(0.7);
  const std::vector<Trial> trials[] = {{{0, 100}, {std::nan(""), 10}}};
  const double norm = 1;
  for (int window = 0; window < 3; ++window)
    EXPECT_EQ(
        controller->decide({.window = window, .lr = 1, .next_lr = 1, .norms = {&norm, 1}, .trials = trials})
            .levels[0],
        0);
}

TEST(Replay, GivesBackWhatWasDecidedAndHoldsTheLast) {
  const auto controller = make_replay({{{0}, {"a"}}, {{1}, {"b"}}, {{0}, {"c"}, 64, "d"}});
  EXPECT_EQ(controller->first().reasons[0], "a");
  EXPECT_EQ(controller->decide({.window = 0}).levels[0], 1);
  EXPECT_EQ(controller->decide({.window = 1}).batch, 64);
  EXPECT_EQ(controller->decide({.window = 7}).reasons[0], "c");
}

}  // namespace
}  // namespace accordion
