#include "accordion/adapt/lgreco.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "accordion/adapt/control.h"

namespace accordion {
namespace {

using Trials = std::vector<std::vector<Trial>>;

double sum(const Trials& trials, const std::vector<int>& levels, double Trial::*what) {
  double result = 0;
  for (std::size_t i = 0; i < trials.size(); ++i)
    result += trials[i][static_cast<std::size_t>(levels[i])].*what;
  return result;
}

// Milder levels lose less and send more, as codecs do.
rc::Gen<Trials> drawn_trials(int layers, int levels) {
  return rc::gen::map(rc::gen::container<std::vector<int>>(static_cast<std::size_t>(2 * layers * levels),
                                                           rc::gen::inRange(1, 50)),
                      [=](const std::vector<int>& drawn) {
                        Trials trials(static_cast<std::size_t>(layers));
                        std::size_t at = 0;
                        for (auto& layer : trials) {
                          double error = 0, bytes = 1000;
                          for (int level = 0; level < levels; ++level) {
                            layer.push_back({error, bytes});
                            error += drawn[at++];
                            bytes -= drawn[at++];
                          }
                        }
                        return trials;
                      });
}

// The fewest bytes among all mixtures within the budget.
double brute_force(const Trials& trials, double budget) {
  const std::size_t levels = trials[0].size();
  double best = std::numeric_limits<double>::infinity();
  std::size_t mixtures = 1;
  for (std::size_t i = 0; i < trials.size(); ++i) mixtures *= levels;
  for (std::size_t code = 0; code < mixtures; ++code) {
    std::vector<int> mixture;
    for (std::size_t rest = code, i = 0; i < trials.size(); ++i, rest /= levels)
      mixture.push_back(static_cast<int>(rest % levels));
    if (sum(trials, mixture, &Trial::error) <= budget)
      best = std::min(best, sum(trials, mixture, &Trial::bytes));
  }
  return best;
}

// Whole errors and as many steps as the budget has units: nothing is rounded, so the optimum is exact.
RC_GTEST_PROP(LgrecoProperties, FindsWhatBruteForceFinds, ()) {
  const int layers = *rc::gen::inRange(1, 5), levels = *rc::gen::inRange(2, 5);
  const Trials trials = *drawn_trials(layers, levels);
  const int uniform = *rc::gen::inRange(1, levels);
  const double budget = sum(trials, std::vector<int>(trials.size(), uniform), &Trial::error);
  const auto got = cheapest_levels(trials, {uniform, static_cast<int>(budget)});
  RC_ASSERT(got.size() == trials.size());
  RC_ASSERT(sum(trials, got, &Trial::error) <= budget);
  RC_ASSERT(sum(trials, got, &Trial::bytes) == brute_force(trials, budget));
}

RC_GTEST_PROP(LgrecoProperties, SendsNoMoreThanTheUniformLevelWithinItsError, ()) {
  const int layers = *rc::gen::inRange(1, 40), levels = *rc::gen::inRange(2, 10);
  const Trials trials = *drawn_trials(layers, levels);
  const int uniform = *rc::gen::inRange(1, levels), resolution = *rc::gen::inRange(1, 2000);
  const std::vector<int> all(trials.size(), uniform);
  const auto got = cheapest_levels(trials, {uniform, resolution});
  RC_ASSERT(sum(trials, got, &Trial::bytes) <= sum(trials, all, &Trial::bytes));
  RC_ASSERT(sum(trials, got, &Trial::error) <=
            sum(trials, all, &Trial::error) * (1 + static_cast<double>(layers) / resolution) * (1 + 1e-12));
}

RC_GTEST_PROP(LgrecoProperties, AStrongerUniformLevelNeverSendsMore, ()) {
  const Trials trials = *drawn_trials(4, 4);
  double before = std::numeric_limits<double>::infinity();
  for (int uniform = 1; uniform < 4; ++uniform) {
    const double budget = sum(trials, std::vector<int>(4, uniform), &Trial::error);
    const auto got = cheapest_levels(trials, {uniform, static_cast<int>(budget)});
    const double bytes = sum(trials, got, &Trial::bytes);
    RC_ASSERT(bytes <= before);
    before = bytes;
  }
}

TEST(Lgreco, SparesTheLayerThatLosesLittle) {
  // One layer hardly notices compression, the other does: the first pays for the second.
  const Trials trials = {{{0, 100}, {10, 90}, {11, 10}}, {{0, 100}, {20, 95}, {200, 10}}};
  EXPECT_EQ(cheapest_levels(trials, {1, 1000}), (std::vector{2, 0}));
}

TEST(Lgreco, LeavesDenseLayersAndImpossibleLevelsAlone) {
  EXPECT_EQ(cheapest_levels(Trials{{}, {{0, 10}, {1, 5}, {2, 1}}}, {1, 100}), (std::vector{1, 1}));
  EXPECT_EQ(cheapest_levels(Trials{{{0, 10}, {1, 5}, {std::nan(""), 1}}}, {1, 100}), (std::vector{1}));
  EXPECT_TRUE(cheapest_levels(Trials{{{0, 10}, {0, 5}}}, {1, 100}).empty()) << "no error to spend";
  EXPECT_TRUE(cheapest_levels(Trials{{{0, 10}, {std::nan(""), 5}}}, {1, 100}).empty());
}

TEST(Lgreco, WaitsForTheEndOfWarmUpAndKeepsWhatItHasWithoutGradients) {
  const auto controller = make_controller({.controller = "lgreco", .uniform = 1}, 2, 3);
  const Trials trials = {{{0, 100}, {10, 90}, {11, 10}}, {{0, 100}, {20, 95}, {200, 10}}};
  const Trials zero = {{{0, 100}, {0, 50}, {0, 10}}, {{0, 100}, {0, 50}, {0, 10}}};
  EXPECT_EQ(controller->first().levels, (std::vector{1, 1}));
  EXPECT_EQ(controller->decide({.window = 0, .lr = 0.1, .next_lr = 0.2, .trials = trials}).levels,
            (std::vector{1, 1}));
  const Decision decision = controller->decide({.window = 1, .lr = 0.2, .next_lr = 0.2, .trials = trials});
  EXPECT_EQ(decision.levels, (std::vector{2, 0}));
  EXPECT_EQ(decision.reasons[0],
            "all layers together send 59.5 % of the uniform level's bytes at 36.7 % of its error");
  EXPECT_EQ(controller->decide({.window = 2, .lr = 0.2, .next_lr = 0.2, .trials = zero}).levels,
            (std::vector{2, 0}));
}

}  // namespace
}  // namespace accordion
