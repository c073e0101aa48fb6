#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "accordion/adapt/accordion.h"
#include "accordion/adapt/static.h"

namespace accordion {
namespace {

constexpr int kStrong = 1;

// Runs a controller over norms of one layer; the level in force during each epoch, and one for the epoch
// after.
std::vector<int> levels(Controller& controller, const std::vector<double>& norms,
                        const std::vector<double>& rates) {
  std::vector<int> result = {controller.first().levels[0]};
  for (std::size_t e = 0; e < norms.size(); ++e)
    result.push_back(controller
                         .decide({static_cast<int>(e),
                                  rates[e],
                                  e + 1 < rates.size() ? rates[e + 1] : rates[e],
                                  {&norms[e], 1}})
                         .levels[0]);
  return result;
}

std::vector<int> levels(const AccordionRule& rule, const std::vector<double>& norms,
                        const std::vector<double>& rates) {
  return levels(*make_accordion(rule, 1, 2), norms, rates);
}

std::vector<double> constant(std::size_t n, double value) {
  return std::vector<double>(n, value);
}

std::vector<double> step_schedule(std::size_t n, const std::vector<std::size_t>& milestones,
                                  double factor = 10) {
  auto rates = constant(n, 1);
  for (std::size_t milestone : milestones)
    for (std::size_t e = milestone; e < n; ++e) rates[e] /= factor;
  return rates;
}

TEST(Accordion, IsMildFirstAndStrongOnceTheNormStands) {
  const auto got = levels({.interval = 10}, constant(25, 3), constant(25, 0.1));
  for (std::size_t e = 0; e < got.size(); ++e) EXPECT_EQ(got[e], e <= 10 ? 0 : kStrong) << e;
}

TEST(Accordion, TakesTheThresholdItselfAsCritical) {
  const auto after = [](double norm) { return levels({.interval = 1}, {1, norm}, constant(2, 1)).back(); };
  EXPECT_EQ(after(0.5), 0);
  EXPECT_EQ(after(1.5), 0);
  EXPECT_EQ(after(std::nextafter(0.5, 1)), kStrong);
  EXPECT_EQ(after(std::nextafter(1.5, 1)), kStrong);
}

TEST(Accordion, IsMildWhereNothingCanBeCompared) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(levels({.interval = 1}, {0, 1}, constant(2, 1)).back(), 0);
  EXPECT_EQ(levels({.interval = 1}, {0, 0}, constant(2, 1)).back(), 0);
  EXPECT_EQ(levels({.interval = 1}, {1, nan}, constant(2, 1)).back(), 0);
  EXPECT_EQ(levels({.interval = 1}, {infinity, 1}, constant(2, 1)).back(), 0);
  EXPECT_EQ(levels({.interval = 1}, {1, nan, 1, 1}, constant(4, 1)), (std::vector{0, 0, 0, 0, kStrong}));
}

TEST(Accordion, ComparesWithTheLastDetectionOnly) {
  // The norm halves within the interval but not from detection to detection.
  std::vector<double> norms = constant(12, 1);
  norms[3] = 0.1;
  EXPECT_EQ(levels({.interval = 5}, norms, constant(12, 1))[6], kStrong);
  norms[5] = 0.1;
  EXPECT_EQ(levels({.interval = 5}, norms, constant(12, 1))[6], 0);
}

// As published: mild from the fall to the next detection.
TEST(Accordion, PublishedRecipeIsMildAfterTheDecays) {
  // The published code lets the rate fall two epochs late, at 152 and 252.
  const auto got =
      levels({.interval = 10, .published = true}, constant(300, 1), step_schedule(300, {152, 252}));
  for (int e = 0; e < 300; ++e) {
    const bool mild = e <= 10 || (e >= 152 && e <= 160) || (e >= 252 && e <= 260);
    EXPECT_EQ(got[static_cast<std::size_t>(e)], mild ? 0 : kStrong) << e;
  }
}

TEST(Accordion, StaysMildForAWholeIntervalAfterADecay) {
  // The rate falls one epoch before a detection; the published rule would end after one epoch.
  const auto rates = step_schedule(60, {30});
  const auto ours = levels({.interval = 10}, constant(60, 1), rates);
  const auto published = levels({.interval = 10, .published = true}, constant(60, 1), rates);
  for (std::size_t e = 20; e < 60; ++e) {
    EXPECT_EQ(ours[e], e >= 30 && e < 40 ? 0 : kStrong) << e;
    EXPECT_EQ(published[e], e == 30 ? 0 : kStrong) << e;
  }
}

// Whatever the distance to the next detection.
TEST(Accordion, HoldsAsLongAsItIsTold) {
  for (const std::size_t fall : {21u, 22u, 25u, 30u, 31u})
    for (const int hold : {1, 2, 10, 15}) {
      const auto got = levels({.interval = 10, .hold = hold}, constant(60, 1), step_schedule(60, {fall}));
      for (std::size_t e = 12; e < 60; ++e)
        EXPECT_EQ(got[e], e >= fall && e < fall + static_cast<std::size_t>(hold) ? 0 : kStrong)
            << e << ", fall " << fall << ", hold " << hold;
    }
}

TEST(Accordion, AFallOfExactlyMinDecayIsNone) {
  const auto at = [](double next) {
    return levels({.interval = 5, .min_decay = 2}, constant(10, 1), {1, 1, 1, 1, 1, 1, 1, 1, next, next})[8];
  };
  EXPECT_EQ(at(0.5), kStrong);
  EXPECT_EQ(at(0.499), 0);
}

TEST(Accordion, ADecayOnADetectionWins) {
  const auto got = levels({.interval = 10, .published = true}, constant(40, 1), step_schedule(40, {21}));
  for (std::size_t e = 11; e < 40; ++e) EXPECT_EQ(got[e], e >= 21 && e <= 30 ? 0 : kStrong) << e;
}

TEST(Accordion, ACosineScheduleIsNoDecay) {
  std::vector<double> rates;
  for (int e = 0; e < 50; ++e) rates.push_back(0.5 * (1 + std::cos(3.14159 * e / 60)));
  const auto ours = levels({.interval = 10}, constant(50, 1), rates);
  const auto published = levels({.interval = 10, .published = true}, constant(50, 1), rates);
  for (std::size_t e = 11; e < 50; ++e) {
    EXPECT_EQ(ours[e], kStrong) << e;
    EXPECT_EQ(published[e], 0) << e;
  }
}

TEST(Accordion, ARisingRateIsNoDecay) {
  std::vector<double> rates;
  for (int e = 0; e < 30; ++e) rates.push_back(e + 1);
  EXPECT_EQ(levels({.interval = 10}, constant(30, 1), rates)[15], kStrong);
}

TEST(Accordion, SaysWhy) {
  const auto controller = make_accordion({.interval = 10}, 1, 2);
  double norm = 1;
  const auto at = [&](int epoch, double rate, double next) {
    return controller->decide({epoch, rate, next, {&norm, 1}}).reasons[0];
  };
  EXPECT_EQ(at(0, 1, 1), "nothing to compare the first norm with");
  norm = 0.38;
  EXPECT_EQ(at(10, 1, 1), "norm fell 62 % since epoch 0, threshold 50 %");
  EXPECT_EQ(at(11, 1, 0.1), "learning rate falls at epoch 12");
}

RC_GTEST_PROP(AccordionProperties, DecisionsDependOnRatiosAlone, ()) {
  const auto norms = *rc::gen::container<std::vector<double>>(
      40, rc::gen::map(rc::gen::inRange(1, 1000), [](int x) { return x / 100.0; }));
  const int interval = *rc::gen::inRange(1, 8);
  const double factor = std::ldexp(1.0, *rc::gen::inRange(-20, 20));
  auto scaled = norms;
  for (double& norm : scaled) norm *= factor;
  const auto rates = step_schedule(40, {static_cast<std::size_t>(*rc::gen::inRange(1, 40))});
  RC_ASSERT(levels({.interval = interval}, norms, rates) == levels({.interval = interval}, scaled, rates));
}

RC_GTEST_PROP(AccordionProperties, AZeroThresholdIsAlwaysMild, ()) {
  const auto norms = *rc::gen::container<std::vector<double>>(
      20, rc::gen::map(rc::gen::inRange(0, 1000), [](int x) { return x / 100.0; }));
  for (const int level :
       levels({.interval = *rc::gen::inRange(1, 8), .threshold = 0}, norms, constant(20, 1)))
    RC_ASSERT(level == 0);
}

TEST(Accordion, TakesItsRuleFromTheOptions) {
  const AccordionRule rule = accordion_rule(
      {.window = 5, .interval = 7, .threshold = 0.3, .min_decay = 4, .hold = 3, .parity = "paper"});
  EXPECT_EQ(rule.interval, 7);
  EXPECT_EQ(rule.threshold, 0.3);
  EXPECT_EQ(rule.min_decay, 4);
  EXPECT_EQ(rule.hold, 3);
  EXPECT_TRUE(rule.published);
  EXPECT_EQ(rule.unit, "window");
}

TEST(Static, NeverMoves) {
  const auto controller = make_static(1);
  for (const int level : levels(*controller, constant(20, 1), step_schedule(20, {5}))) EXPECT_EQ(level, 0);
}

}  // namespace
}  // namespace accordion
