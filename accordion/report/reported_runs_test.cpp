#include "accordion/report/reported_runs.h"

#include <gtest/gtest.h>

#include <fstream>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/log/run_folder.h"
#include "accordion/report/comparison_folder.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

class ReportedRunsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "reported_runs.XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder); }

  fs::path write_run(const std::string& name, int seed, double accuracy, const std::string& codec = "none",
                     const std::string& status = "finished") const {
    RunFolder run(folder / name, IfTaken::kReplace);
    run.write_config({{"workers", 2}, {"options", {{"seed", seed}, {"codec", codec}}}});
    EpochRecord record;
    record.test_accuracy = accuracy;
    run.append_epoch(to_json(record));
    if (!status.empty()) run.write_summary({{"status", status}});
    return folder / name;
  }

  fs::path folder;
};

TEST_F(ReportedRunsTest, RunsThatDifferInTheirSeedAloneAreOneSetting) {
  const ReportedRuns reported =
      read_reported_runs({write_run("a", 1, 0.5), write_run("b", 1, 0.4, "topk"), write_run("c", 2, 0.6)});
  ASSERT_EQ(reported.settings.size(), 2U);
  EXPECT_EQ(reported.settings[0].name, "a");
  EXPECT_EQ(reported.settings[0].runs.size(), 2U);
  EXPECT_EQ(reported.settings[1].name, "b");
  const auto comparison = reported.comparison();
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->rows[0].runs, 2);
  EXPECT_EQ(comparison->rows[1].pairs, 1);
}

TEST_F(ReportedRunsTest, AComparisonHasItsOwnNamesAndOrder) {
  write_run("mild/seed-1", 1, 0.5);
  write_run("top_1__/seed-1", 1, 0.4, "topk");
  write_comparison_folder(
      folder,
      {.recipe = "demo.toml", .seeds = {1, 2}, .settings = {{"top 1 %", "top_1__"}, {"mild", "mild"}}});
  const ReportedRuns reported = read_reported_runs({folder});
  ASSERT_EQ(reported.settings.size(), 2U);
  EXPECT_EQ(reported.settings[0].name, "top 1 %");
  EXPECT_EQ(reported.settings[0].runs.size(), 1U);
  EXPECT_EQ(reported.problems,
            (std::vector<std::string>{"top 1 %, seed 2: has not run yet", "mild, seed 2: has not run yet"}));
  EXPECT_EQ(reported.to_come, 2);
  ASSERT_EQ(reported.comparisons.size(), 1U);
  EXPECT_EQ(reported.comparisons[0].second.recipe, "demo.toml");
  EXPECT_EQ(read_reported_runs({folder / "mild" / "seed-1/"}).settings[0].name, "mild");
}

TEST_F(ReportedRunsTest, SettingsOfOneNameAreToldApartByTheirFolders) {
  const auto names = [](const std::vector<fs::path>& folders) {
    std::vector<std::string> all;
    for (const ReportedSetting& setting : read_reported_runs(folders).settings) all.push_back(setting.name);
    return all;
  };
  using Names = std::vector<std::string>;
  const fs::path a = write_run("a/run", 1, 0.5), b = write_run("b/run", 1, 0.5, "topk"),
                 c = write_run("c", 1, 0.5, "fp16"), deep = write_run("x/b/run", 1, 0.5, "bf16");
  EXPECT_EQ(names({a, b, c}), (Names{"a/run", "b/run", "c"}));
  EXPECT_EQ(names({a, b, deep}), (Names{"a/run", folder.filename().string() + "/b/run", "x/b/run"}));
  EXPECT_EQ(names({write_run("a/mild/seed-1", 1, 0.5), write_run("b/mild/seed-1", 1, 0.5, "topk")}),
            (Names{"a/mild", "b/mild"}));
  for (const char* each : {"a", "b"})
    write_comparison_folder(folder / each, {.recipe = "r", .seeds = {1}, .settings = {{"mild %", "mild"}}});
  EXPECT_EQ(names({folder / "a", folder / "b"}), (Names{"a/mild %", "b/mild %"}));
  // The same twice: nothing tells them apart, and that is no endless search.
  EXPECT_EQ(names({folder / "a", folder / "a"}).size(), 2U);
}

TEST_F(ReportedRunsTest, AComparisonKeepsTheOptionsOfItsCommandLine) {
  using Options = std::vector<std::pair<std::string, std::string>>;
  write_comparison_folder(folder,
                          {.recipe = "r", .seeds = {1}, .settings = {}, .options = {{"samples", "20"}}});
  EXPECT_EQ(read_comparison_folder(folder)->options, (Options{{"samples", "20"}}));
  std::ofstream(folder / kComparisonFile) << R"({"recipe": "r", "seeds": [1], "settings": []})";
  EXPECT_EQ(read_comparison_folder(folder)->options, Options{}) << "of an older version";
}

TEST_F(ReportedRunsTest, WhatCannotBeReadIsTold) {
  const fs::path run = write_run("a", 1, 0.5);
  std::ofstream(run / "epochs.jsonl", std::ios::app) << "{\"epoch\": \"one\"}\n{\"epo";
  const ReportedRuns reported = read_reported_runs({run});
  const ReportedRun& read = reported.settings[0].runs[0];
  EXPECT_EQ(read.epochs.size(), 1U);
  ASSERT_EQ(read.problems.size(), 2U);
  EXPECT_NE(read.problems[0].find("line 3: cut short"), std::string::npos) << read.problems[0];
  EXPECT_NE(read.problems[1].find("record 2: epoch record: \"epoch\" is \"one\""), std::string::npos)
      << read.problems[1];
}

TEST_F(ReportedRunsTest, OnlyFinishedRunsHaveAResult) {
  const ReportedRuns reported =
      read_reported_runs({write_run("a", 1, 0.5, "none", ""), write_run("b", 2, 0.5, "none", "failed")});
  EXPECT_FALSE(reported.comparison());
  EXPECT_EQ(reported.settings[0].runs[0].status(), "running or cut short");
  EXPECT_EQ(reported.settings[0].runs[1].status(), "failed");
}

TEST_F(ReportedRunsTest, AnythingElseIsRefused) {
  EXPECT_THROW(read_reported_runs({folder}), UsageError);
  EXPECT_THROW(read_reported_runs({folder / "nowhere"}), UsageError);
  for (const char* text : {"{", "{}", R"({"seeds": [1], "settings": [{"name": "a", "folder": "../b"}]})",
                           R"({"seeds": [1], "settings": [{"name": "a", "folder": ".."}]})",
                           R"({"seeds": ["x"], "settings": []})"}) {
    std::ofstream(folder / kComparisonFile) << text;
    EXPECT_THROW(read_reported_runs({folder}), Error) << text;
  }
}

TEST_F(ReportedRunsTest, AComparisonHasBounds) {
  const auto complaint = [&](const std::string& more) -> std::string {
    std::ofstream(folder / kComparisonFile) << R"({"more": )" << more << R"(, "seeds": [], "settings": []})";
    try {
      read_comparison_folder(folder);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const std::string file = (folder / kComparisonFile).string();
  EXPECT_EQ(complaint("1"), "");
  EXPECT_TRUE(complaint('"' + std::string(kMostJsonBytes, 'x') + '"').starts_with(file));
  EXPECT_TRUE(complaint(std::string(200, '[') + std::string(200, ']')).starts_with(file));
}

}  // namespace
}  // namespace accordion
