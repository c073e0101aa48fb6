#include "accordion/log/read_run.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace accordion {
namespace {

namespace fs = std::filesystem;

class ReadRun : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "read_run.XXXXXX";
    folder = ::mkdtemp(name.data());
    write("config.json", "{\"model\": \"cnn\"}");
  }
  void TearDown() override { fs::remove_all(folder); }

  void write(const char* name, const std::string& text) const { std::ofstream(folder / name) << text; }

  std::string complaint() const {
    try {
      read_run(folder);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }

  fs::path folder;
};

TEST_F(ReadRun, ARunThatHasJustBegun) {
  const accordion::Run run = read_run(folder);
  EXPECT_EQ(run.config["model"], "cnn");
  EXPECT_TRUE(run.epochs.empty());
  EXPECT_FALSE(run.summary);
}

TEST_F(ReadRun, EveryPrefixOfARecordReads) {
  const std::string text = "{\"epoch\":1,\"loss\":0.5}\n{\"epoch\":2,\"loss\":0.25}\n";
  const std::size_t first = text.find('\n');
  for (std::size_t size = 0; size <= text.size(); ++size) {
    write("epochs.jsonl", text.substr(0, size));
    const std::size_t whole = size < first ? 0 : size < text.size() - 1 ? 1 : 2;
    ASSERT_EQ(read_run(folder).epochs.size(), whole) << "at " << size;
  }
}

TEST_F(ReadRun, ABadLineIsNamed) {
  write("epochs.jsonl", "{\"epoch\":1}\n{\"epoch\":\n{\"epoch\":3}\n");
  EXPECT_EQ(complaint().find((folder / "epochs.jsonl").string() + ", line 2 is not JSON"), 0U) << complaint();
  write("epochs.jsonl", "{\"epoch\":1}\n\n[3]\n");
  EXPECT_EQ(complaint(), (folder / "epochs.jsonl").string() + ", line 3 is a list, expected an object");
}

TEST_F(ReadRun, ABadLastLineThatWasFinishedIsAnError) {
  write("epochs.jsonl", "{\"epoch\":1}\n{\"epoch\"\n");
  EXPECT_NE(complaint().find("line 2"), std::string::npos);
}

TEST_F(ReadRun, TellsWhatItLeavesOutRatherThanThrow) {
  write("epochs.jsonl", "{\"epoch\":1}\n{\"epoch\"\n{\"epoch\":3}\n{\"epo");
  write("summary.json", "[]");
  std::vector<std::string> problems;
  const accordion::Run run = read_run(folder, problems);
  ASSERT_EQ(run.epochs.size(), 2U);
  EXPECT_EQ(run.epochs[1]["epoch"], 3);
  EXPECT_FALSE(run.summary);
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_NE(problems[0].find("summary.json is a list, expected an object"), std::string::npos);
  EXPECT_NE(problems[1].find("line 2 is not JSON"), std::string::npos);
  EXPECT_NE(problems[2].find("line 4: cut short, or being written"), std::string::npos);
  EXPECT_THROW(read_run(folder / "absent", problems), UsageError);
}

TEST_F(ReadRun, ABrokenConfigIsNamed) {
  write("config.json", "{");
  EXPECT_EQ(complaint().find((folder / "config.json").string() + " is not JSON"), 0U);
}

TEST_F(ReadRun, WhatIsNoRun) {
  EXPECT_THROW(read_run(folder / "absent"), UsageError);
  EXPECT_THROW(read_run(folder / "config.json"), UsageError);
  fs::remove(folder / "config.json");
  EXPECT_EQ(complaint(), folder.string() + " is not a run's folder: it has no config.json");
  fs::create_directory(folder / "config.json");
  EXPECT_EQ(complaint(), (folder / "config.json").string() + ": cannot read: Is a directory");
}

}  // namespace
}  // namespace accordion
