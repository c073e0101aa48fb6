#include "accordion/report/run_result.h"
#include "accordion/base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "accordion/base/error.h"
#include "accordion/log/epoch_record.h"
#include "accordion/log/run_folder.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

EpochRecord epoch(int number, double accuracy, double seconds, std::uint64_t wire_bytes) {
  EpochRecord record;
  record.epoch = number;
  record.train_loss = number == 0 ? 0.5 : 0.25;
  record.test_accuracy = accuracy;
  record.seconds = seconds;
  record.payload_bytes = wire_bytes / 2;
  record.wire_bytes = wire_bytes;
  record.paper_floats = wire_bytes + 1;
  return record;
}

class RunResultTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "run_result.XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder); }

  void write_run(const std::string& status, const std::vector<EpochRecord>& epochs) const {
    RunFolder run(folder, IfTaken::kReplace);
    run.write_config({{"workers", 2}, {"threads", 1}, {"options", {{"epochs", 2}, {"lr", 0.1}}}});
    for (const EpochRecord& epoch : epochs) run.append_epoch(to_json(epoch));
    if (!status.empty()) run.write_summary({{"status", status}});
  }

  void write_file(const char* name, const std::string& text) const { std::ofstream(folder / name) << text; }

  fs::path folder;
  const RunPlan plan = {.options = {{"epochs", 2}, {"lr", 0.1}}, .workers = 2};
  const std::vector<EpochRecord> epochs = {epoch(0, 0.9, 2, 20), epoch(1, 0.8, 3, 2)};
};

TEST_F(RunResultTest, IsTheLastEpochsAccuracyAndTheSumOfTheCosts) {
  write_run("finished", epochs);
  const RunResult result = read_result(folder);
  EXPECT_EQ(result.metric, Metric::kAccuracy);
  EXPECT_EQ(result.value, 0.8);  // Not the best one.
  EXPECT_EQ(result.seconds, 5);
  EXPECT_EQ(result.payload_bytes, 11);
  EXPECT_EQ(result.wire_bytes, 22);
  EXPECT_EQ(result.paper_floats, 24);
  EXPECT_EQ(result.train_loss, 0.25);
}

TEST_F(RunResultTest, ALossThatIsNotFiniteIsNone) {
  std::vector<EpochRecord> wild = epochs;
  wild.back().train_loss = std::nan("");
  write_run("finished", wild);
  EXPECT_FALSE(read_result(folder).train_loss);
}

TEST_F(RunResultTest, OfALanguageModelIsAPerplexity) {
  EpochRecord record;
  record.test_perplexity = 97.5;
  write_run("finished", {record});
  EXPECT_EQ(read_result(folder).metric, Metric::kPerplexity);
  EXPECT_EQ(read_result(folder).value, 97.5);
}

TEST_F(RunResultTest, WithoutEpochsIsAnErrorThatNamesTheFolder) {
  write_run("finished", {});
  try {
    read_result(folder);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(folder.string()), std::string::npos);
  }
}

TEST_F(RunResultTest, AFinishedRunOfThePlanIsKept) {
  write_run("finished", epochs);
  EXPECT_EQ(why_not_finished(folder, plan), "");
}

TEST_F(RunResultTest, AnythingElseSaysWhyNot) {
  EXPECT_EQ(why_not_finished(folder / "nowhere", plan), "there is none");
  write_run("interrupted", epochs);
  EXPECT_EQ(why_not_finished(folder, plan), "it was interrupted");
  write_run("failed", epochs);
  EXPECT_EQ(why_not_finished(folder, plan), "it failed");
  write_run("", epochs);
  EXPECT_EQ(why_not_finished(folder, plan), "it was cut short");
  write_run("finished", {});
  EXPECT_NE(why_not_finished(folder, plan), "");
}

TEST_F(RunResultTest, AnotherPlanSaysWhatChanged) {
  write_run("finished", epochs);
  RunPlan other = plan;
  other.options["epochs"] = 3;
  EXPECT_EQ(why_not_finished(folder, other), "epochs was 2 and is 3");
  other = plan;
  other.options["clip"] = 0.4;
  EXPECT_EQ(why_not_finished(folder, other), "clip was not recorded");
  other = plan;
  other.workers = 4;
  EXPECT_EQ(why_not_finished(folder, other), "workers was 2 and is 4");
  other = plan;
  other.threads = 1;
  EXPECT_EQ(why_not_finished(folder, other), "");
  other.threads = 2;
  EXPECT_EQ(why_not_finished(folder, other), "threads was 1 and is 2");
}

TEST_F(RunResultTest, FilesThatCannotBeReadAreAReasonToRunAgain) {
  for (const char* text : {"", "{", "[]", "{\"options\": 3, \"workers\": 2}"}) {
    write_run("finished", epochs);
    write_file(kConfigFile, text);
    EXPECT_NE(why_not_finished(folder, plan), "") << text;
  }
  write_run("finished", epochs);
  write_file(kSummaryFile, "{\"status\": 1}");
  EXPECT_NE(why_not_finished(folder, plan), "");
}

}  // namespace
}  // namespace accordion
