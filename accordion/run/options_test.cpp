#include "accordion/run/options.h"

#include <gtest/gtest.h>

#include <functional>

#include "accordion/base/json.h"

namespace accordion {
namespace {

TrainOptions paper() {
  TrainOptions options;
  options.epochs = 300;
  options.lr = 0.4;
  options.warmup_epochs = 5;
  options.warmup_lr = 0.1;
  options.schedule = "step";
  options.milestones = {150, 250};
  return options;
}

TEST(LearningRate, FollowsThePublishedRecipe) {
  const TrainOptions options = paper();
  EXPECT_DOUBLE_EQ(learning_rate(options, 0), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 2.5), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(options, 5), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(options, 149.99), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(options, 150), 0.04);
  EXPECT_DOUBLE_EQ(learning_rate(options, 250), 0.004);
}

// The published recipe in parity: the rate falls two epochs after its milestones, and the levels are mild
// until the next detection.
TEST(LearningRate, InParityFallsWhereThePublishedCodeHasIt) {
  TrainOptions options = paper();
  options.control = {.controller = "accordion",
                     .mild = "powersgd:approx-rank=2",
                     .strong = "powersgd:approx-rank=1",
                     .parity = "paper"};
  EXPECT_GT(learning_rate(options, 151.99), 5 * learning_rate(options, 152));
  EXPECT_GT(learning_rate(options, 251.99), 5 * learning_rate(options, 252));
  const auto controller = make_controller(options.control, 1, 2);
  const double norm = 1;
  std::vector<int> levels = {controller->first().levels[0]};
  for (int epoch = 0; epoch + 1 < 300; ++epoch)
    levels.push_back(controller
                         ->decide({.window = epoch,
                                   .lr = learning_rate(options, epoch),
                                   .next_lr = learning_rate(options, epoch + 1),
                                   .norms = {&norm, 1}})
                         .levels[0]);
  for (int epoch = 0; epoch < 300; ++epoch) {
    const bool mild = epoch <= 10 || (epoch >= 152 && epoch <= 160) || (epoch >= 252 && epoch <= 260);
    EXPECT_EQ(levels[static_cast<std::size_t>(epoch)], mild ? 0 : 1) << epoch;
  }
}

TEST(LearningRate, CosineFallsFromPeakToNothing) {
  TrainOptions options;
  options.schedule = "cosine";
  options.epochs = 12;
  options.warmup_epochs = 2;
  EXPECT_DOUBLE_EQ(learning_rate(options, 2), options.lr);
  EXPECT_DOUBLE_EQ(learning_rate(options, 7), options.lr / 2);
  EXPECT_NEAR(learning_rate(options, 12), 0, 1e-15);
  for (double epoch = 2; epoch < 12; epoch += 0.25)
    EXPECT_GT(learning_rate(options, epoch), learning_rate(options, epoch + 0.25));
}

// Each mistake is answered by name, value and what would be right.
TEST(TrainOptions, RefuseWhatMakesNoSense) {
  struct Case {
    std::function<void(TrainOptions&)> spoil;
    std::string expected;
  };
  const Case cases[] = {
      {[](auto& o) { o.momentum = 1; }, "train: momentum=1, expected [0, 1)"},
      {[](auto& o) { o.lr = 0; }, "train: lr=0, expected above 0"},
      {[](auto& o) { o.epochs = 0; }, "train: epochs=0, expected at least 1"},
      {[](auto& o) { o.optimizer = "sdg"; },
       "train: unknown optimizer \"sdg\"; did you mean \"sgd\"? There are: sgd, adamw"},
      {[](auto& o) { o.control.codec = "non"; }, "unknown codec \"non\"; did you mean \"none\"?"},
      {[](auto& o) { o.control.codec = "topk:keep=2"; }, "topk: keep=2, expected (0, 1]"},
      {[](auto& o) { o.control.codec = "dgc", o.optimizer = "adamw"; },
       "train: codec=dgc with optimizer=adamw"},
      {[](auto& o) { o.control.codec = "sign-vote:count=true,chunked=true"; },
       "sign-vote: chunked=true with count=true"},
      {[](auto& o) { o.diagnose = "hessian", o.control.window = 5; },
       "train: diagnose=hessian beside window"},
      {[](auto& o) { o.control.norms = "aggregated", o.non_finite = "skip"; },
       "train: norms=aggregated beside non-finite=skip"},
      {[](auto& o) {
         o.control.controller = "smith", o.control.batch_mild = 8, o.control.batch_strong = 16,
         o.accumulate = 2;
       },
       "train: accumulate=2 beside batch-mild"},
      {[](auto& o) { o.schedule = "step"; }, "train: schedule=step without milestones"},
      {[](auto& o) { o.milestones = {3}; }, "train: milestones need schedule=step"},
      {[](auto& o) {
         o.schedule = "step", o.milestones = {5, 5};
       },
       "train: milestones must rise, but 5 follows 5"},
      {[](auto& o) { o.nesterov = true, o.momentum = 0; }, "train: nesterov needs"},
      {[](auto& o) { o.warmup_lr = 1; }, "train: warmup-lr=1, expected at most lr=0.1"},
  };
  EXPECT_NO_THROW(check_train_options(TrainOptions{}));
  EXPECT_NO_THROW(check_train_options(paper()));
  for (const Case& c : cases) {
    TrainOptions options;
    c.spoil(options);
    try {
      check_train_options(options);
      ADD_FAILURE() << c.expected;
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, c.expected.size()), c.expected);
    }
  }
}

TEST(TrainOptions, SurviveJson) {
  TrainOptions options = paper(), read;
  options.weight_decay = 5e-4;
  options.flip = true;
  from_json(Json::parse(to_json(options).dump()), read);
  EXPECT_EQ(to_json(read), to_json(options));
}

TEST(TrainWarnings, TellOfALargeStepWithVotes) {
  TrainOptions options;
  EXPECT_TRUE(train_warnings(options).empty());
  options.control.codec = "sign-vote";
  ASSERT_EQ(train_warnings(options).size(), 1u);
  EXPECT_NE(train_warnings(options)[0].find("lr=0.1"), std::string::npos);
  options.lr = 0.001;
  EXPECT_TRUE(train_warnings(options).empty());
}

}  // namespace
}  // namespace accordion
