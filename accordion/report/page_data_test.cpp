#include "accordion/report/page_data.h"

#include <gtest/gtest.h>

#include <cmath>

#include "accordion/base/json.h"

namespace accordion {
namespace {

LayerRecord layer(const std::string& name, double norm, int level, std::optional<std::int64_t> bytes = {}) {
  return {.name = name,
          .elements = 10,
          .norm = norm,
          .level = level,
          .codec = level ? "topk" : "none",
          .reason = "why",
          .payload_bytes = bytes};
}

ReportedRun run_of(std::vector<EpochRecord> epochs, const std::string& controller = "accordion") {
  ReportedRun run{.folder = "runs/a"};
  run.config = {{"options", {{"controller", controller}, {"seed", 7}}}};
  for (std::size_t e = 0; e < epochs.size(); ++e) epochs[e].epoch = static_cast<int>(e);
  run.epochs = std::move(epochs);
  return run;
}

const Commands kCommands = {
    .run = [](const Json&) { return "again"; },
    .comparison = [](const std::filesystem::path& folder,
                     const ComparisonFolder& made) { return folder.string() + " of " + made.recipe; }};

Json data_of(ReportedRun run) {
  ReportedRuns reported;
  reported.settings.push_back({.name = "a", .runs = {}});
  reported.settings[0].runs.push_back(std::move(run));
  return page_data(reported, kCommands)["runs"][0];
}

TEST(PageData, HasARowForEachLayer) {
  EpochRecord first, second;
  first.layers = {layer("conv", 2, 0, 400), layer("fc", std::nan(""), 1, 8)};
  second.layers = {layer("conv", 1, 1, 40), layer("fc", 3, 1, 8)};
  const Json run = data_of(run_of({first, second}));
  ASSERT_EQ(run["layers"].size(), 2U);
  EXPECT_EQ(run["layers"][0]["norm"].dump(), "[2.0,1.0]");
  EXPECT_EQ(run["layers"][1]["norm"].dump(), "[null,3.0]");
  EXPECT_EQ(run["layers"][0]["bytes"], 440);
  EXPECT_EQ(run["layers"][0]["state"].dump(), "[0,1]");
  EXPECT_EQ(run["layers"][1]["state"].dump(), "[1,1]") << "the same state once";
  EXPECT_EQ(run["states"][0]["critical"], true);
  EXPECT_EQ(run["states"][1]["critical"], false);
  EXPECT_EQ(run["points"].dump(), R"({"unit":"epoch","at":[0,1]})");
  EXPECT_EQ(run["seed"], 7);
  EXPECT_EQ(run["command"], "again");
  EXPECT_EQ(run["bytes_known"], true);
}

TEST(PageData, OtherControllersNameNoRegimes) {
  EpochRecord record;
  record.layers = {layer("conv", 2, 0)};
  const Json run = data_of(run_of({record}, "static"));
  EXPECT_EQ(run["critical_known"], false);
  EXPECT_TRUE(run["states"][0]["critical"].is_null());
  EXPECT_EQ(run["bytes_known"], false);
}

TEST(PageData, UnderAGuardTheControllersLevelIsCriticalOrNot) {
  EpochRecord record;
  record.layers = {layer("conv", 2, -1)};
  record.layers[0].may = 0;
  const Json run = data_of(run_of({record}));
  EXPECT_EQ(run["states"][0]["critical"], true);
  EXPECT_EQ(run["states"][0]["may"], 0);
}

TEST(PageData, ASmallBatchIsCriticalWhereTheBatchIsControlled) {
  EpochRecord small, large;
  small.layers = large.layers = {layer("conv", 2, 0)};
  small.global_batch = 64;
  large.global_batch = 512;
  ReportedRun run = run_of({small, large});
  run.config["options"]["batch_mild"] = 64;
  const Json data = data_of(std::move(run));
  EXPECT_EQ(data["states"][data["layers"][0]["state"][0].get<std::size_t>()]["critical"], true);
  EXPECT_EQ(data["states"][data["layers"][0]["state"][1].get<std::size_t>()]["critical"], false);
}

TEST(PageData, WindowsAreThePointsWhereThereAreAny) {
  EpochRecord record;
  record.layers = {layer("conv", 4, 1, 100)};
  record.windows = {{.window = 0, .lr = 1, .steps = 2, .layers = {layer("conv", 3, 0)}},
                    {.window = 1, .lr = 1, .steps = 2, .layers = {layer("conv", 4, 1)}}};
  const Json run = data_of(run_of({record}));
  EXPECT_EQ(run["points"].dump(), R"({"unit":"window","at":[0,1]})");
  EXPECT_EQ(run["layers"][0]["norm"].dump(), "[3.0,4.0]");
  EXPECT_EQ(run["layers"][0]["bytes"], 100);
}

TEST(PageData, LayersThatComeLateOrTwiceKeepTheTableWhole) {
  EpochRecord first, second;
  first.layers = {layer("conv", 1, 0), layer("conv", 2, 0)};
  second.layers = {layer("new", 3, 0)};
  const Json run = data_of(run_of({first, second}));
  EXPECT_EQ(run["layers"][0]["norm"].dump(), "[1.0,null]");
  EXPECT_EQ(run["layers"][1]["norm"].dump(), "[null,3.0]");
}

TEST(PageData, HasTheCommandOfAComparison) {
  ReportedRuns reported;
  reported.comparisons.emplace_back(
      "out", ComparisonFolder{.recipe = "demo.toml", .seeds = {1}, .settings = {{"a", "a"}}});
  EXPECT_EQ(page_data(reported, kCommands)["comparisons"].dump(),
            R"([{"folder":"out","recipe":"demo.toml","command":"out of demo.toml"}])");
}

TEST(PageData, IsOverWhenEveryRunHasEndedAndNoneIsToCome) {
  ReportedRuns reported;
  const auto over = [&] { return page_data(reported, kCommands)["over"].get<bool>(); };
  EXPECT_FALSE(over()) << "no run has begun";
  reported.settings.push_back({.name = "a", .runs = {run_of({})}});
  EXPECT_FALSE(over()) << "it goes on";
  reported.settings[0].runs[0].summary = Json{{"status", "finished"}};
  EXPECT_TRUE(over());
  reported.to_come = 1;
  EXPECT_FALSE(over()) << "between two runs";
}

TEST(PageData, WithoutEpochsThereIsStillAPage) {
  const Json run = data_of(run_of({}));
  EXPECT_TRUE(run["layers"].empty());
  EXPECT_TRUE(run["epochs"]["train_loss"].empty());
}

}  // namespace
}  // namespace accordion
