#include "accordion/run/replay.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "accordion/base/json.h"
#include "accordion/log/run_folder.h"
#include "accordion/log/windows.h"

namespace accordion {
namespace {

const std::vector<std::string> kLayers = {"a", "b"};

std::vector<LayerRecord> layers(int a, int b) {
  return {{.name = "a", .norm = 1, .level = a, .reason = "first"}, {.name = "b", .norm = 2, .level = b}};
}

// A run that another is to repeat.
class Replayed : public ::testing::Test {
 protected:
  ~Replayed() override { std::filesystem::remove_all(path_); }

  void write(const TrainOptions& options, const std::vector<EpochRecord>& epochs) {
    RunFolder folder(path_, IfTaken::kReplace);
    folder.write_config({{"options", to_json(options)}});
    for (const EpochRecord& epoch : epochs) folder.append_epoch(to_json(epoch));
  }

  // Levels that change, and a batch that is set from the second epoch on.
  void write_two_epochs() {
    TrainOptions options;
    options.control = {
        .controller = "joint", .mild = "none", .strong = "topk", .batch_mild = 8, .batch_strong = 16};
    EpochRecord first, second;
    first.global_batch = second.global_batch = 16;
    first.layers = layers(0, 1);
    second.epoch = 1;
    second.batch_reason = "grown";
    second.layers = layers(1, 0);
    write(options, {first, second});
  }

  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("accordion-replay-" + std::to_string(::getpid()));
};

TEST_F(Replayed, BringsTheOptionsOfItsController) {
  write_two_epochs();
  EXPECT_EQ(recorded_control(path_).strong, "topk");
  TrainOptions options;
  options.replay = path_.string();
  EXPECT_EQ(resolve(options).control.controller, "joint");
  options.control.interval = 3;
  EXPECT_THROW(resolve(options), UsageError);
  EXPECT_EQ(resolve(TrainOptions{}).control.controller, "static");
}

TEST_F(Replayed, DecidesAsItsRecord) {
  write_two_epochs();
  TrainOptions options;
  options.replay = path_.string();
  const auto controller = run_controller(options, kLayers, 2);
  EXPECT_FALSE(controller->needs().gradients());
  const Decision first = controller->first();
  EXPECT_EQ(first.levels, (std::vector{0, 1}));
  EXPECT_EQ(first.reasons[0], "replayed: first");
  EXPECT_EQ(first.batch, 0) << "it was the run's own";
  for (int window = 0; window < 3; ++window) {  // The last one holds.
    const Decision next = controller->decide({.window = window});
    EXPECT_EQ(next.levels, (std::vector{1, 0}));
    EXPECT_EQ(next.batch, 16);
    EXPECT_EQ(next.batch_reason, "grown");
  }
}

TEST_F(Replayed, IsRefusedForAnotherModel) {
  write_two_epochs();
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"a", "c"}, std::vector<std::string>{"a"},
        std::vector<std::string>{"a", "b", "c"}})
    EXPECT_THROW(replayed_controller(path_, other), UsageError);
}

TEST_F(Replayed, IsRefusedWithoutAController) {
  RunFolder(path_, IfTaken::kReplace).write_config({{"options", {{"lr", 1}}}});
  EXPECT_THROW(recorded_control(path_), UsageError);
}

// What a controller saw: the rate before it was scaled with the batch, and windows where there are some.
TEST_F(Replayed, HasTheWindowsThatItsControllerSaw) {
  EpochRecord epoch;
  epoch.lr = 0.4;
  epoch.schedule_lr = 0.1;
  epoch.steps = 7;
  epoch.layers = layers(0, 0);
  epoch.windows = {{0, 0.3, 5, layers(0, 1)}, {1, 0.2, 2, layers(1, 1)}};
  TrainOptions options;
  write(options, {epoch});
  const auto whole = read_run_windows(path_);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].lr, 0.1);
  EXPECT_EQ(whole[0].steps, 7);
  options.control.window = 5;
  write(options, {epoch});
  const auto windows = read_run_windows(path_);
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[1].lr, 0.2);
  EXPECT_EQ(windows[1].steps, 2);
  EXPECT_EQ(windows[1].layers[0].level, 1);
}

}  // namespace
}  // namespace accordion
