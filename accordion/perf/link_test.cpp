#include "accordion/perf/link.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "accordion/perf/drawn_testing.h"

namespace accordion::perf {
namespace {

// Sizes of 1 KiB to 64 MiB, each four times.
std::vector<Sample> measured(const Cost& cost, double noise, std::uint64_t seed = 7) {
  Draw draw(seed);
  std::vector<Sample> samples;
  for (int k = 0; k < 4; ++k)
    for (double bytes = 1024; bytes <= (64 << 20); bytes *= 2)
      samples.push_back({bytes, cost.seconds(bytes) * (1 + noise * draw.uniform(-1, 1))});
  return samples;
}

TEST(FitCost, FindsALine) {
  const Cost truth{.small = {2e-4, 8e-10}};
  const Fit exact = fit_cost(measured(truth, 0));
  EXPECT_NEAR(exact.cost.small.seconds, 2e-4, 1e-10);
  EXPECT_NEAR(exact.cost.small.seconds_per_byte, 8e-10, 1e-16);
  EXPECT_TRUE(std::isinf(exact.cost.large_from));
  EXPECT_NEAR(exact.r_squared, 1, 1e-9);
  EXPECT_EQ(exact.samples, 68);

  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Fit noisy = fit_cost(measured(truth, 0.05, seed));
    EXPECT_TRUE(std::isinf(noisy.cost.large_from)) << seed;
    EXPECT_NEAR(noisy.cost.small.seconds / 2e-4, 1, 0.03);
    EXPECT_NEAR(noisy.cost.small.seconds_per_byte / 8e-10, 1, 0.03);
    EXPECT_GT(noisy.r_squared, 0.95);
  }
}

TEST(FitCost, FindsTwoLines) {
  const Cost jump{{1e-4, 5e-10}, {3e-3, 9e-10}, 300e3};
  const Cost bend{{5e-5, 4e-9}, {5e-5 + 1e6 * 3e-9, 1e-9}, 1e6};  // Large messages travel faster.
  for (const Cost& truth : {jump, bend})
    for (const double noise : {0.0, 0.02, 0.05}) {
      const Fit fit = fit_cost(measured(truth, noise, 3));
      EXPECT_FALSE(std::isinf(fit.cost.large_from));
      EXPECT_GT(fit.r_squared, 0.95);
      for (double bytes = 1024; bytes <= (64 << 20); bytes *= 1.3) {
        if (bytes > truth.large_from / 2 && bytes < truth.large_from * 2)
          continue;  // No sample says where in between.
        EXPECT_NEAR(fit.cost.seconds(bytes) / truth.seconds(bytes), 1, 0.01 + noise) << bytes;
      }
    }
}

TEST(FitCost, SmallMessagesCountAsMuchAsLarge) {
  const Cost truth{.small = {1e-4, 1e-9}};
  std::vector<Sample> samples = measured(truth, 0);
  for (Sample& sample : samples)
    if (sample.bytes > (16 << 20))
      sample.seconds *= 1.02;  // By milliseconds, which would be all of the latency.
  EXPECT_NEAR(fit_cost(samples).cost.small.seconds / 1e-4, 1, 0.05);
}

TEST(FitCost, OfOneSize) {
  const std::vector<Sample> samples{{1000, 3e-3}, {1000, 1e-3}, {1000, 2e-3}};
  const Cost cost = fit_cost(samples).cost;
  EXPECT_DOUBLE_EQ(cost.seconds(1), 2e-3);
  EXPECT_DOUBLE_EQ(cost.seconds(1000), 2e-3);
  EXPECT_DOUBLE_EQ(cost.seconds(3000), 6e-3);
  EXPECT_DOUBLE_EQ(fit_cost(std::vector<Sample>{{8, 5e-4}}).cost.seconds(4), 5e-4);
}

TEST(FitCost, OfNothingIsFree) {
  EXPECT_EQ(fit_cost({}).cost.seconds(1e6), 0);
  EXPECT_EQ(fit_cost({}).samples, 0);
}

TEST(FitCost, TimesThatFallAreALatency) {
  const Cost cost = fit_cost(std::vector<Sample>{{1000, 3e-3}, {2000, 2e-3}, {4000, 1e-3}}).cost;
  EXPECT_EQ(cost.small.seconds_per_byte, 0);
  EXPECT_GT(cost.small.seconds, 1e-3);
}

RC_GTEST_PROP(FitCost, NeverFallsWhateverTheSamples, ()) {
  std::vector<Sample> samples;
  const auto count = *rc::gen::inRange(0, 40);
  Draw draw(*rc::gen::arbitrary<std::uint64_t>());
  const double odd[] = {0, -1, -1e-3, 1e-30, 1e30, std::nan(""), INFINITY, -INFINITY};
  for (int i = 0; i < count; ++i) {
    Sample sample{draw.chance(0.3) ? 4096 : draw.log_uniform(1, 1e9), draw.log_uniform(1e-6, 10)};
    if (draw.chance(0.1)) sample.bytes = odd[draw.integer(0, 7)];
    if (draw.chance(0.1)) sample.seconds = odd[draw.integer(0, 7)];
    samples.push_back(sample);
  }
  const Fit fit = fit_cost(samples);
  RC_ASSERT(std::isfinite(fit.r_squared));
  double last = 0;
  std::vector<double> sizes{fit.cost.large_from};
  for (double bytes = 1; bytes < 1e10; bytes *= 1.5) sizes.push_back(bytes);
  if (std::isfinite(fit.cost.large_from))
    sizes.push_back(std::nextafter(fit.cost.large_from, 0));
  else
    sizes.erase(sizes.begin());
  std::sort(sizes.begin(), sizes.end());
  for (const double bytes : sizes) {
    const double seconds = fit.cost.seconds(bytes);
    RC_ASSERT(std::isfinite(seconds));
    RC_ASSERT(seconds >= last * (1 - 1e-12));
    last = seconds;
  }
  RC_ASSERT(fit.cost.small.seconds >= 0 && fit.cost.large.seconds >= 0);
}

}  // namespace
}  // namespace accordion::perf
