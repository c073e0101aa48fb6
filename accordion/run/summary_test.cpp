#include "accordion/run/summary.h"

#include <gtest/gtest.h>

#include "accordion/base/json.h"

namespace accordion {
namespace {

EpochRecord epoch(int number, double accuracy, double norm) {
  EpochRecord record;
  record.epoch = number;
  record.test_accuracy = accuracy;
  record.seconds = 1.5;
  record.steps = 10;
  record.payload_bytes = 100;
  record.wire_bytes = 300;
  record.paper_floats = 25;
  record.layers = {{.name = "w", .elements = 60, .norm = norm}, {.name = "b", .elements = 40, .norm = 0}};
  return record;
}

TEST(Summary, AddsUpAndTakesAccuracyFromTheLastEpoch) {
  const Json summary = summarise({epoch(0, 0.5, 1), epoch(1, 0.75, 1), epoch(2, 0.625, 1)}, {});
  EXPECT_EQ(summary["epochs"], 3);
  EXPECT_EQ(summary["seconds"], 4.5);
  EXPECT_EQ(summary["steps"], 30);
  EXPECT_EQ(summary["payload_bytes"], 300);
  EXPECT_EQ(summary["wire_bytes"], 900);
  EXPECT_EQ(summary["paper_floats"], 75);
  EXPECT_EQ(summary["test_accuracy"], 0.625);
  EXPECT_EQ(summary["best_test_accuracy"], 0.75);
  EXPECT_FALSE(summary.contains("density"));
  EXPECT_FALSE(summary.contains("detectors"));
}

TEST(Summary, OfALanguageModelHasItsPerplexity) {
  std::vector<EpochRecord> epochs = {epoch(0, 0, 1), epoch(1, 0, 1)};
  for (std::size_t i = 0; i < 2; ++i) {
    epochs[i].test_accuracy.reset();
    epochs[i].test_perplexity = i == 0 ? 90.5 : 100;
  }
  const Json summary = summarise(epochs, {});
  EXPECT_EQ(summary["test_perplexity"], 100);
  EXPECT_EQ(summary["best_test_perplexity"], 90.5);
  EXPECT_FALSE(summary.contains("test_accuracy"));
  EXPECT_FALSE(summary.contains("best_test_accuracy"));
}

TEST(Summary, OfNothingHasNoAccuracy) {
  const Json summary = summarise({}, {});
  EXPECT_EQ(summary["epochs"], 0);
  EXPECT_FALSE(summary.contains("test_accuracy"));
}

TEST(Summary, DensityIsEntriesOverStepsAndElements) {
  std::vector<EpochRecord> epochs = {epoch(0, 0.5, 1), epoch(1, 0.5, 1)};
  epochs[0].entries = 30;
  epochs[1].entries = 10;
  EXPECT_DOUBLE_EQ(summarise(epochs, {})["density"], 40.0 / (20 * 100));
}

// The norm is per step: half the steps sum to half the norm, and nothing has changed.
TEST(Summary, ComparesTheDetectors) {
  std::vector<EpochRecord> epochs = {epoch(0, 0.5, 8), epoch(1, 0.5, 4), epoch(2, 0.5, 1)};
  epochs[1].steps = 5;
  epochs[2].steps = 5;
  for (std::size_t i = 0; i < 3; ++i) epochs[i].hessian_eigenvalue = i < 2 ? 10 : 1;
  const Json detectors = summarise(epochs, {.interval = 1})["detectors"];
  EXPECT_EQ(detectors["comparisons"], 2);
  EXPECT_EQ(detectors["agreements"], 2);
  EXPECT_EQ(detectors["points"][1]["norm_critical"], false);
  EXPECT_EQ(detectors["points"][2]["norm_critical"], true);
}

}  // namespace
}  // namespace accordion
