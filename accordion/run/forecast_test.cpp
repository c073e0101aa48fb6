#include "accordion/run/forecast.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "accordion/exchange/forecast.h"
#include "accordion/run/plan.h"
#include "accordion/run/shapes.h"

namespace accordion {
namespace {

const std::vector<TensorInfo> kTensors = {
    {"a", {{64, 32, 3, 3}}}, {"b", {{64}}}, {"c", {{100, 64}}}, {"d", {{30, 40}}}};
constexpr int kWorkers = 4;

// CIFAR-10, cut as the trainer cuts it.
StepsInEpoch cifar_steps(const TrainOptions& options) {
  return [options](std::int64_t global_batch) {
    const auto accumulate = static_cast<int>(global_batch / options.batch / kWorkers);
    const EpochPlan plan = plan_epoch(50000, options.batch, accumulate, 0, kWorkers, options.drop_last);
    return static_cast<std::int64_t>(plan.steps.size());
  };
}

// 7 steps an epoch, whatever the batch.
std::int64_t seven(std::int64_t) {
  return 7;
}

TrainOptions run_of(const std::function<void(TrainOptions&)>& change) {
  TrainOptions options;
  options.epochs = 12;
  options.control.interval = 2;
  change(options);
  check_train_options(options);
  return options;
}

std::uint64_t floats_at(const TrainOptions& options, int level, int epoch = 0) {
  const auto levels = control_levels("test", options.control, parameter_count(kTensors));
  return StepForecast(kTensors, {.levels = levels}, kWorkers, options.epochs)
      .step(std::vector<int>(kTensors.size(), level), epoch)
      .most.paper_floats;
}

TEST(RunForecast, GivesThePublishedCountOfResNet18) {
  TrainOptions options;
  options.epochs = 300;
  options.control.parity = "paper";
  for (const auto& [setting, floats] :
       {std::pair{"powersgd:approx-rank=1", 45935ull}, std::pair{"powersgd:approx-rank=2", 82260ull}}) {
    options.control.codec = setting;
    const RunForecast run = forecast_run(options, model_shapes("resnet18"), kWorkers, cifar_steps(options));
    EXPECT_TRUE(run.exact());
    EXPECT_EQ(run.most.steps, 300 * 98);
    EXPECT_EQ(run.most.traffic.paper_floats, 300 * 98 * floats);
    EXPECT_EQ(run.most.traffic.payload_bytes, 4 * 300 * 98 * floats);
    EXPECT_EQ(run.most.traffic.wire_bytes, 6 * 300 * 98 * floats);
  }
}

TEST(RunForecast, FollowsAWrittenPlan) {
  const auto options = run_of([](TrainOptions& o) {
    o.control.controller = "schedule";
    o.control.levels = "none;topk:keep=0.1;topk:keep=0.01";
    o.control.plan = "1@0-3,strong@5-6,mild";
  });
  const RunForecast run = forecast_run(options, kTensors, kWorkers, seven);
  EXPECT_TRUE(run.exact());
  EXPECT_EQ(run.most.traffic.paper_floats,
            7 * (3 * floats_at(options, 1) + floats_at(options, 2) + 8 * floats_at(options, 0)));
}

// Windows of 5 steps in epochs of 7: the first three windows are 15 steps.
TEST(RunForecast, FollowsAPlanInWindows) {
  const auto options = run_of([](TrainOptions& o) {
    o.control.controller = "schedule";
    o.control.mild = "topk:keep=0.1";
    o.control.strong = "topk:keep=0.01";
    o.control.plan = "strong@0-3,mild";
    o.control.window = 5;
  });
  const RunForecast run = forecast_run(options, kTensors, kWorkers, seven);
  EXPECT_TRUE(run.exact());
  EXPECT_EQ(run.most.traffic.paper_floats,
            15 * floats_at(options, 1) + (12 * 7 - 15) * floats_at(options, 0));
}

// Mild in epochs 0 to 2, of which the last begins before there is anything to compare, and in the 2 epochs
// from the decay on.
TEST(RunForecast, AccordionIsMildAtLeastAtTheStartAndAfterDecays) {
  const auto options = run_of([](TrainOptions& o) {
    o.control.controller = "accordion";
    o.control.mild = "topk:keep=0.1";
    o.control.strong = "topk:keep=0.01";
    o.schedule = "step";
    o.milestones = {7};
  });
  const RunForecast run = forecast_run(options, kTensors, kWorkers, seven);
  EXPECT_FALSE(run.exact());
  EXPECT_EQ(run.most.traffic.paper_floats, 12 * 7 * floats_at(options, 0));
  EXPECT_EQ(run.least.traffic.paper_floats, 7 * (5 * floats_at(options, 0) + 7 * floats_at(options, 1)));

  TrainOptions always = options;
  always.control.threshold = 0;  // No change is too small.
  const RunForecast mild = forecast_run(always, kTensors, kWorkers, seven);
  EXPECT_TRUE(mild.exact());
  EXPECT_EQ(mild.most.traffic, run.most.traffic);
}

// A window begins in the middle of an epoch, with the rate that the schedule has there. Windows of 5 steps,
// epochs of 7: the rate falls at step 21 and is seen where the window after it begins, at step 25.
TEST(RunForecast, SeesADecayWhereTheNextWindowBegins) {
  const auto options = run_of([](TrainOptions& o) {
    o.control.controller = "accordion";
    o.control.mild = "topk:keep=0.1";
    o.control.strong = "topk:keep=0.01";
    o.control.window = 5;
    o.control.interval = 1;
    o.schedule = "step";
    o.milestones = {3};
  });
  const RunForecast run = forecast_run(options, kTensors, kWorkers, seven);
  EXPECT_EQ(run.least.traffic.paper_floats,
            15 * floats_at(options, 0) + (12 * 7 - 15) * floats_at(options, 1));
}

// A window that ends with its epoch sees the rate of the next one.
TEST(RunForecast, SeesADecayBeforeTheLastEpoch) {
  const auto options = run_of([](TrainOptions& o) {
    o.control.controller = "accordion";
    o.control.mild = "topk:keep=0.1";
    o.control.strong = "topk:keep=0.01";
    o.control.window = 7;
    o.control.interval = 1;
    o.schedule = "step";
    o.milestones = {11};
  });
  const RunForecast run = forecast_run(options, kTensors, kWorkers, seven);
  EXPECT_EQ(run.least.traffic.paper_floats, 7 * (3 * floats_at(options, 0) + 9 * floats_at(options, 1)));
}

TrainOptions three_levels(const std::string& controller, const std::string& levels) {
  return run_of([&](TrainOptions& o) {
    o.control.controller = controller;
    o.control.levels = levels;
    o.warmup_epochs = controller == "lgreco" ? 4 : 0;
    if (controller == "joint") o.control.batch_mild = o.control.batch_strong = 512;
  });
}

// As close as each controller's rule allows.
TEST(RunForecast, AsksTheControllerWhatItMayChoose) {
  const auto floats = [](const std::string& controller, const std::string& levels) {
    const TrainOptions options = three_levels(controller, levels);
    const RunForecast run = forecast_run(options, kTensors, kWorkers, seven);
    return std::pair{run.least.traffic.paper_floats, run.most.traffic.paper_floats};
  };
  const std::string falling = "none;topk:keep=0.1;topk:keep=0.01";
  const auto at = [](const std::string& controller, const std::string& levels, int level) {
    return 7 * floats_at(three_levels(controller, levels), level);
  };
  const auto mild = at("auto", falling, 0), middle = at("auto", falling, 1), strong = at("auto", falling, 2);
  // Mild until there are two norms to compare, at intervals of 2.
  EXPECT_EQ(floats("auto", falling), (std::pair{3 * mild + 9 * strong, 12 * mild}));
  // One level milder a window, from the third on.
  EXPECT_EQ(floats("adaqs", falling), (std::pair{12 * strong, 2 * strong + middle + 9 * mild}));
  // The uniform level while the rate rises, which it does until epoch 4.
  EXPECT_EQ(floats("lgreco", falling), (std::pair{5 * middle + 7 * strong, 5 * middle + 7 * mild}));
  // Never the level in between, here the one that sends most.
  const std::string odd = "topk:keep=0.1;none;topk:keep=0.01";
  for (const std::string controller : {"accordion", "joint"})
    EXPECT_EQ(floats(controller, odd), (std::pair{3 * middle + 9 * strong, 12 * middle})) << controller;
}

TEST(RunForecast, CountsTheRunsOwnBatch) {
  const auto options = run_of([](TrainOptions& o) { o.accumulate = 2; });
  const RunForecast run = forecast_run(options, kTensors, kWorkers, cifar_steps(options));
  EXPECT_EQ(run.most.steps, 12 * 49);
}

TEST(RunForecast, BatchesGrowAsPublished) {
  const auto options = run_of([](TrainOptions& o) {
    o.epochs = 300;
    o.control.interval = 10;
    o.control.controller = "accordion";
    o.control.batch_mild = 512;
    o.control.batch_strong = 4096;
    o.drop_last = true;
  });
  const RunForecast run = forecast_run(options, kTensors, kWorkers, cifar_steps(options));
  EXPECT_EQ(run.least.steps, 97 * 20 + 12 * 280);
  EXPECT_EQ(run.most.steps, 97 * 300);
}

// Fewer steps sum to less, which is no critical regime: levels stay strong when the batch has grown.
TEST(RunForecast, GradientsThatNeverChangeDoNotWhenTheBatchGrows) {
  const auto options = run_of([](TrainOptions& o) {
    o.epochs = 300;
    o.control.interval = 10;
    o.control.controller = "joint";
    o.control.mild = "topk:keep=0.1";
    o.control.strong = "topk:keep=0.01";
    o.control.batch_mild = 512;
    o.control.batch_strong = 4096;
    o.drop_last = true;
  });
  const RunForecast run = forecast_run(options, kTensors, kWorkers, cifar_steps(options));
  EXPECT_EQ(run.least.traffic.paper_floats,
            11 * 97 * floats_at(options, 0) + (9 * 97 + 280 * 12) * floats_at(options, 1));
}

TEST(RunForecast, SmithsBatchFollowsTheSchedule) {
  const auto options = run_of([](TrainOptions& o) {
    o.epochs = 300;
    o.control.controller = "smith";
    o.control.batch_mild = 512;
    o.control.batch_strong = 5120;
    o.schedule = "step";
    o.milestones = {150, 250};
  });
  const RunForecast run = forecast_run(options, kTensors, kWorkers, cifar_steps(options));
  EXPECT_TRUE(run.exact());
  EXPECT_EQ(run.most.steps, 98 * 150 + 10 * 150);
}

std::int64_t steps_with(std::int64_t batch) {
  return 8192 / batch;
}

// A run of the controller over gradients that were drawn: what it would send, counted window by window.
RunForecast::Total simulate(const TrainOptions& options) {
  const auto levels = control_levels("test", options.control, parameter_count(kTensors));
  const StepForecast step(kTensors, {.levels = levels}, kWorkers, options.epochs);
  const auto controller = make_controller(options.control, kTensors.size(), static_cast<int>(levels.size()));
  Decision decision = controller->first();
  RunForecast::Total total;
  const auto drawn = [] { return std::exp(*rc::gen::inRange(-20, 21) / 4.0); };
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const std::int64_t steps = steps_with(decision.batch > 0 ? decision.batch : 128 * kWorkers);
    const Tally tally = step.step(decision.levels, epoch).most.times(steps);
    total.steps += steps;
    total.traffic.payload_bytes += tally.payload_bytes;
    total.traffic.wire_bytes += tally.wire_bytes(kWorkers);
    total.traffic.paper_floats += tally.paper_floats;
    std::vector<double> norms, squares;
    std::vector<std::vector<Trial>> trials;
    for (std::size_t i = 0; i < kTensors.size(); ++i) {
      norms.push_back(drawn());
      squares.push_back(norms.back() * norms.back() * (1 + drawn()));
      trials.emplace_back();
      for (std::size_t level = 0; level < levels.size(); ++level)
        trials.back().push_back({drawn() * static_cast<double>(level), drawn()});
    }
    decision = controller->decide({.window = epoch,
                                   .lr = learning_rate(options, epoch),
                                   .next_lr = learning_rate(options, epoch + 1),
                                   .norms = norms,
                                   .steps = steps,
                                   .squares = squares,
                                   .trials = trials});
  }
  return total;
}

// Of any controller, with the levels and batches that it takes.
TrainOptions drawn_run() {
  const ControllerKind kind = *rc::gen::elementOf(controllers());
  const bool batch =
      kind.batch == SetsBatch::kAlways || (kind.batch == SetsBatch::kInstead && *rc::gen::arbitrary<bool>());
  const bool one = kind.levels == TakesLevels::kOne || (batch && kind.batch == SetsBatch::kInstead);
  return run_of([&](TrainOptions& o) {
    o.epochs = *rc::gen::inRange(1, 14);
    o.warmup_epochs = *rc::gen::inRange(0, 4);
    o.schedule = "step";
    o.milestones = {*rc::gen::inRange(1, 14)};
    o.control.controller = kind.name;
    o.control.interval = *rc::gen::inRange(1, 5);
    o.control.threshold = *rc::gen::inRange(1, 10) / 10.0;
    o.control.plan = "1@2-5,mild@6-7,strong";
    // The last list is not mildest first, which is the user's affair.
    if (!one && kind.levels != TakesLevels::kOwn)
      o.control.levels = *rc::gen::element<std::string>(
          "none;topk:keep=0.25", "powersgd:approx-rank=4;powersgd:approx-rank=2;powersgd:approx-rank=1",
          "topk:keep=0.01;randomk:keep=0.3;none");
    if (one) o.control.codec = *rc::gen::element<std::string>("none", "topk:keep=0.25", "fp16");
    if (!batch) return;
    o.control.batch_mild = 512;
    o.control.batch_strong = 2048;
  });
}

TEST(RunForecast, BoundsWhateverAControllerMaySee) {
  EXPECT_TRUE(rc::check([] {
    const TrainOptions options = drawn_run();
    const RunForecast run = forecast_run(options, kTensors, kWorkers, steps_with);
    const RunForecast::Total total = simulate(options);
    RC_TAG(options.control.controller);
    RC_ASSERT(run.least.steps <= total.steps);
    RC_ASSERT(run.most.steps >= total.steps);
    RC_ASSERT(run.least.traffic.paper_floats <= total.traffic.paper_floats);
    RC_ASSERT(run.most.traffic.paper_floats >= total.traffic.paper_floats);
    RC_ASSERT(run.least.traffic.payload_bytes <= total.traffic.payload_bytes);
    RC_ASSERT(run.most.traffic.payload_bytes >= total.traffic.payload_bytes);
    RC_ASSERT(run.least.traffic.wire_bytes <= total.traffic.wire_bytes);
    RC_ASSERT(run.most.traffic.wire_bytes >= total.traffic.wire_bytes);
  }));
}

// It says nothing about what it may choose.
class Restless final : public Controller {
 public:
  explicit Restless(std::size_t layers) : now_(uniform_decision(layers, 1, "")) {}
  Decision first() override { return now_; }
  Decision decide(const Observation&) override { return now_; }

 private:
  Decision now_;
};

TEST(RunForecast, OfAControllerFromOutsideIsAnyLevelItTakes) {
  add_controller({.name = "restless", .help = "", .make = [](const ControlOptions&, std::size_t layers, int) {
                    return std::make_unique<Restless>(layers);
                  }});
  const auto options = run_of([](TrainOptions& o) {
    o.control.controller = "restless";
    o.control.levels = "none;topk:keep=0.1;topk:keep=0.01";
  });
  const RunForecast run = forecast_run(options, kTensors, kWorkers, seven);
  EXPECT_EQ(run.most.traffic.paper_floats, 12 * 7 * floats_at(options, 0));
  EXPECT_EQ(run.least.traffic.paper_floats, 12 * 7 * floats_at(options, 2));
}

}  // namespace
}  // namespace accordion
