#include "accordion/train/data_options.h"

#include <gtest/gtest.h>

namespace accordion {
namespace {

TEST(DataOptions, StepsAreThoseOfThePlan) {
  TrainOptions options;
  options.samples = 1000;
  options.batch = 50;
  options.drop_last = true;
  const DatasetFacts data = dataset_facts("fashion-mnist");
  EXPECT_EQ(steps_in_epoch(options, data, 3, 150), 6);
  EXPECT_EQ(steps_in_epoch(options, data, 3, 450), 2);
  options.drop_last = false;
  EXPECT_EQ(steps_in_epoch(options, data, 3, 450), 3);
}

TEST(DataOptions, RefuseMoreSamplesThanThereAre) {
  TrainOptions options;
  options.samples = 60000;
  check_samples(options, dataset_facts("fashion-mnist"));
  options.samples = 60001;
  EXPECT_THROW(check_samples(options, dataset_facts("fashion-mnist")), UsageError);
}

}  // namespace
}  // namespace accordion
