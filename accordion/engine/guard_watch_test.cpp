// What a guard sees of steps, by their seconds alone.
#include "accordion/engine/guard_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

namespace accordion {
namespace {

std::vector<double> ten(double seconds) {
  return std::vector<double>(10, seconds);
}

// Steps of 20 ms that were measured in a window; dense ones take 100.
GuardWatch watching() {
  GuardWatch watch;
  watch.probed(ten(0.1));
  watch.expect(0.021);
  for (int k = 0; k < 5; ++k) EXPECT_FALSE(watch.glance(ten(0.02)));
  EXPECT_EQ(watch.end_window(GuardWatch::Levels::kSome)->verdict, GuardWatch::Verdict::kAsExpected);
  EXPECT_EQ(watch.expected(), 0.02);
  return watch;
}

TEST(GuardWatch, AGlanceSeesWhatIsOffByHalf) {
  EXPECT_FALSE(watching().glance(ten(0.029)));
  EXPECT_TRUE(watching().glance(ten(0.031)));
  EXPECT_FALSE(watching().glance(ten(0.014)));
  EXPECT_TRUE(watching().glance(ten(0.013)));
  EXPECT_FALSE(watching().glance(std::vector<double>(5, 0.1))) << "too few";
  std::vector<double> some = ten(0.02);
  std::fill_n(some.begin(), 4, 0.1);
  EXPECT_FALSE(watching().glance(some));
  some[4] = 0.1;
  EXPECT_TRUE(watching().glance(some));
}

// Lognormal, which is worse than steps are.
TEST(GuardWatch, NoiseOfAQuarterGivesNoAlarms) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal(0, 0.25);
  GuardWatch watch = watching();
  int alarms = 0, dense_alarms = 0;
  for (int k = 0; k < 10000; ++k) {
    std::vector<double> steps = ten(0.02);
    for (double& step : steps) step *= std::exp(normal(random));
    alarms += watch.glance(steps);
    watch.end_window(GuardWatch::Levels::kSome);
  }
  for (int k = 0; k < 1000; ++k) {
    if (!watch.see_dense(0.1 * std::exp(normal(random)))) continue;
    ++dense_alarms;
    watch.probed(ten(0.1));
  }
  EXPECT_LE(alarms, 5) << "in 100 000 steps";
  EXPECT_LE(dense_alarms, 30) << "in 1000 dense steps, or 150 000 steps";
}

TEST(GuardWatch, AProbeThatDidNotHelpIsNotRepeatedAtAGlance) {
  GuardWatch watch;
  watch.probed(ten(0.1));
  watch.expect(0.02);
  EXPECT_TRUE(watch.glance(ten(0.04)));
  watch.heeded(false);
  watch.expect(0.02);  // As foreseen again, and wrong again.
  for (int k = 0; k < 5; ++k) EXPECT_FALSE(watch.glance(ten(0.04)));
  EXPECT_EQ(watch.end_window(GuardWatch::Levels::kSome)->verdict, GuardWatch::Verdict::kAsExpected);
  EXPECT_EQ(watch.expected(), 0.04);
}

TEST(GuardWatch, AlarmsForNothingMakeItPatient) {
  GuardWatch watch = watching();
  const auto glances = [&] {
    int glances = 1;
    while (!watch.glance(ten(0.04))) ++glances;
    return glances;
  };
  const auto dense_steps = [&] {
    int steps = 1;
    while (!watch.see_dense(0.05)) ++steps;
    watch.probed(ten(0.1));
    return steps;
  };
  const auto heed = [&](bool for_nothing) {
    watch.heeded(for_nothing);
    watch.expect(0.02);
    watch.glance(ten(0.02));
    watch.end_window(GuardWatch::Levels::kSome);
  };
  for (const int patience : {1, 2, 4, 4}) {
    EXPECT_EQ(glances(), patience);
    EXPECT_EQ(dense_steps(), patience + 1);
    heed(true);
  }
  heed(false);
  EXPECT_EQ(glances(), 1);
}

// A machine that is now a tenth slower, now not, is no changed network.
TEST(GuardWatch, AWindowThatWasOffForNothingTakesAnother) {
  using Verdict = GuardWatch::Verdict;
  GuardWatch watch = watching();
  const auto window = [&](double seconds) {
    for (int k = 0; k < 5; ++k) EXPECT_FALSE(watch.glance(ten(seconds)));
    return watch.end_window(GuardWatch::Levels::kSome)->verdict;
  };
  EXPECT_EQ(window(0.0235), Verdict::kOff);
  watch.heeded_window(true);
  watch.expect(0.021);
  EXPECT_EQ(window(0.0235), Verdict::kDrifts);
  EXPECT_EQ(watch.expected(), 0.0235) << "after a decision, that is what it takes";
  EXPECT_EQ(window(0.0235), Verdict::kAsExpected);
  EXPECT_EQ(window(0.028), Verdict::kDrifts);
  EXPECT_EQ(window(0.024), Verdict::kAsExpected);
  EXPECT_EQ(window(0.028), Verdict::kDrifts);
  EXPECT_EQ(window(0.028), Verdict::kOff) << "a change that lasts is met within two windows";
  watch.heeded_window(false);
  watch.expect(0.028);
  EXPECT_EQ(window(0.028), Verdict::kAsExpected);
  EXPECT_EQ(window(0.034), Verdict::kOff);
  // Ever more patient, up to four.
  for (const int patience : {2, 4, 4}) {
    watch.heeded_window(true);
    watch.expect(0.02);
    EXPECT_NE(window(0.02), Verdict::kOff);
    for (int k = 1; k < patience; ++k) EXPECT_EQ(window(0.024), Verdict::kDrifts);
    EXPECT_EQ(window(0.024), Verdict::kOff) << patience;
  }
}

// Where dense steps take five times as long, no probe is needed to know that they do.
TEST(GuardWatch, NothingElseToChooseIsNoReasonToProbe) {
  using Verdict = GuardWatch::Verdict;
  using Levels = GuardWatch::Levels;
  // Of the first window, or where that says nothing yet, of two.
  const auto verdict = [](double seconds, Levels levels) {
    GuardWatch watch = watching();
    Verdict verdict = Verdict::kDrifts;
    for (int window = 0; window < 2 && verdict == Verdict::kDrifts; ++window) {
      EXPECT_EQ(watch.expected(), 0.02);
      for (int k = 0; k < 5; ++k) EXPECT_FALSE(watch.glance(ten(seconds)));
      verdict = watch.end_window(levels)->verdict;
    }
    EXPECT_EQ(watch.expected(), verdict == Verdict::kStillPays ? seconds : 0.02);
    return verdict;
  };
  EXPECT_EQ(verdict(0.026, Levels::kStrongest), Verdict::kStillPays);
  EXPECT_EQ(verdict(0.026, Levels::kSome), Verdict::kOff) << "a stronger level may be shorter";
  EXPECT_EQ(verdict(0.015, Levels::kSome), Verdict::kStillPays) << "they have become shorter anyway";
  EXPECT_EQ(verdict(0.026, Levels::kDense), Verdict::kOff);
  EXPECT_EQ(verdict(0.015, Levels::kDense), Verdict::kOff);
  EXPECT_EQ(verdict(0.021, Levels::kStrongest), Verdict::kAsExpected);

  GuardWatch close;  // Dense steps take one and a quarter as long: less than steps may have changed by.
  close.probed(ten(0.025));
  close.expect(0.02);
  for (int k = 0; k < 5; ++k) EXPECT_FALSE(close.glance(ten(0.017)));
  EXPECT_EQ(close.end_window(Levels::kStrongest)->verdict, Verdict::kOff);
}

TEST(GuardWatch, DenseStepsThatAreShorterTwiceTell) {
  GuardWatch watch = watching();
  EXPECT_FALSE(watch.see_dense(0.5)) << "longer ones do not";
  EXPECT_FALSE(watch.suspects());
  EXPECT_FALSE(watch.see_dense(0.7 * 0.1));
  EXPECT_TRUE(watch.suspects());
  EXPECT_FALSE(watch.see_dense(0.1));
  EXPECT_FALSE(watch.suspects());
  EXPECT_FALSE(watch.see_dense(0.7 * 0.1));
  EXPECT_TRUE(watch.see_dense(0.74 * 0.1));
}

TEST(GuardWatch, DenseStepsAreOftenAtFirstAndWithinTheirShare) {
  GuardWatch watch;
  watch.probed(ten(0.022));
  watch.expect(0.02);
  EXPECT_EQ(watch.dense_every(), 15);
  for (int k = 0; k < 6; ++k) watch.see_dense(0.025);
  EXPECT_EQ(watch.dense().low, 0.025) << "the probe's are forgotten";
  EXPECT_EQ(watch.dense_every(), 150);
  watch.see_dense(0.2);
  EXPECT_EQ(watch.dense_every(), 150) << "a single long one may be anything";
  watch.see_dense(0.2);
  EXPECT_NEAR(watch.dense_every(), 1000, 1) << "what the last ones took counts as well";
  // With more dense steps than are kept, those before a decision go first too.
  for (int k = 0; k < 40; ++k) watch.see_dense(0.03);
  EXPECT_EQ(watch.dense_steps(), 30u);
  watch.expect(0.028);
  for (int k = 0; k < 6; ++k) watch.see_dense(0.031);
  EXPECT_EQ(watch.dense_steps(), 6u);
}

// By pairs with dense steps, whatever the window took.
TEST(GuardWatch, SlowerThanDense) {
  using Verdict = GuardWatch::Verdict;
  const auto verdict = [](const Longer& longer, GuardWatch::Levels levels = GuardWatch::Levels::kSome) {
    GuardWatch watch = watching();
    for (int k = 0; k < 5; ++k) EXPECT_FALSE(watch.glance(ten(0.02)));
    const Verdict verdict = watch.end_window(levels, longer)->verdict;
    return std::pair(verdict, watch.doubts());
  };
  EXPECT_EQ(verdict({1.03, 1.001, 1.06}).first, Verdict::kSlowerThanDense);
  EXPECT_EQ(verdict({1.03, 0.99, 1.06}), std::pair(Verdict::kAsExpected, true));
  EXPECT_EQ(verdict({1.01, 1.001, 1.02}), std::pair(Verdict::kAsExpected, false));
  EXPECT_EQ(verdict({1.2, 1.1, 1.3}, GuardWatch::Levels::kDense), std::pair(Verdict::kAsExpected, false));
}

// A network that recovers shows in messages, also where steps hide them.
TEST(GuardWatch, FasterMessagesAreToldOnce) {
  GuardWatch watch = watching();
  const auto wire = [&](double seconds) {
    watch.glance(ten(0.02), ten(seconds));
    return watch.recovers();
  };
  for (int k = 0; k < 5; ++k) EXPECT_FALSE(wire(0.004)) << "nothing to compare with yet";
  watch.end_window(GuardWatch::Levels::kSome);
  EXPECT_FALSE(wire(0.003));
  EXPECT_TRUE(wire(0.0026));
  EXPECT_FALSE(wire(0.0026));
  for (int k = 0; k < 5; ++k) EXPECT_FALSE(wire(0.005));
  watch.end_window(GuardWatch::Levels::kSome);
  EXPECT_TRUE(wire(0.003)) << "slower for a window, and then not";
  watch.expect(0.02);
  EXPECT_FALSE(wire(0.001)) << "after a decision";
}

TEST(GuardWatch, GlancesAreCheap) {
  GuardWatch watch;
  EXPECT_EQ(watch.glance_steps(), 10);
  for (const double seconds : {1e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 1.0}) {
    watch.expect(seconds);
    const int steps = watch.glance_steps();
    EXPECT_GE(steps, 10);
    EXPECT_TRUE(steps * seconds >= 0.12 || steps == GuardWatch::kWindow) << seconds;
  }
}

}  // namespace
}  // namespace accordion
