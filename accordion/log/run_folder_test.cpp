#include "accordion/log/run_folder.h"
#include "accordion/base/json.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>

#include "accordion/log/read_run.h"
#include "accordion/log/write_file.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

std::string complaint(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

class RunFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "run_folder.XXXXXX";
    base = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(base); }

  // Runs `action` where no file may grow beyond `bytes`, as on a full disk; returns its complaint.
  std::string on_a_full_disk(rlim_t bytes, const std::function<void()>& action) const {
    const fs::path report = base / "complaint";
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      rlimit limit{.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      const std::string text = complaint(action);
      limit.rlim_cur = RLIM_INFINITY;
      ::setrlimit(RLIMIT_FSIZE, &limit);
      write(report, text);
      ::_exit(0);
    }
    ::waitpid(pid, nullptr, 0);
    return read(report);
  }

  fs::path base;
};

TEST_F(RunFolderTest, HoldsWhatADesignedRunHolds) {
  RunFolder folder(base / "deep" / "run");
  EXPECT_TRUE(fs::is_directory(folder.checkpoints()));
  folder.write_config({{"model", "cnn"}});
  folder.append_epoch({{"epoch", 1}});
  EXPECT_EQ(read(folder.path() / "epochs.jsonl"), "{\"epoch\":1}\n");
  folder.append_epoch({{"epoch", 2}, {"text", "two\nlines"}});
  EXPECT_FALSE(read_run(folder.path()).summary);
  folder.write_summary({{"test_accuracy", 0.9}});
  const accordion::Run run = read_run(folder.path());
  EXPECT_EQ(run.config["model"], "cnn");
  ASSERT_EQ(run.epochs.size(), 2U);
  EXPECT_EQ(run.epochs[1]["text"], "two\nlines");
  EXPECT_EQ((*run.summary)["test_accuracy"], 0.9);
  EXPECT_EQ(files_in(folder.path()), 4U) << "a temporary file is left";
}

TEST_F(RunFolderTest, HasOneWriterAtATime) {
  {
    const RunFolder writer(base / "run");
    for (const IfTaken if_taken : {IfTaken::kContinue, IfTaken::kReplace})
      EXPECT_THROW(RunFolder(base / "run", if_taken), UsageError);
  }
  EXPECT_NO_THROW(RunFolder(base / "run", IfTaken::kContinue));
}

TEST_F(RunFolderTest, AnotherRunIsNotWrittenOver) {
  RunFolder(base / "run").write_config({{"model", "cnn"}});
  EXPECT_THROW(RunFolder{base / "run"}, UsageError);
  const std::string told = complaint([&] { RunFolder{base / "run"}; });
  EXPECT_EQ(
      told,
      "the folder " + (base / "run").string() +
          " holds a run already (config.json); give another with --out, or replace it with --overwrite");
  EXPECT_EQ(complaint([&] { RunFolder(base / "run", IfTaken::kContinue); }), "none");
  EXPECT_EQ(read_run(base / "run").config["model"], "cnn");
}

TEST_F(RunFolderTest, CheckpointsAloneAreARunToo) {
  const fs::path checkpoints = RunFolder(base / "run").checkpoints();
  EXPECT_EQ(complaint([&] { RunFolder{base / "run"}; }), "none") << "nothing has been written yet";
  write(checkpoints / "1", "x");
  EXPECT_NE(complaint([&] { RunFolder{base / "run"}; }), "none");
}

TEST_F(RunFolderTest, ReplacingLeavesOtherFilesAlone) {
  RunFolder(base / "run").append_epoch({{"epoch", 1}});
  write(base / "run" / kCheckpointsFolder / "1", "x");
  write(base / "run" / "notes.txt", "mine");
  const RunFolder after(base / "run", IfTaken::kReplace);
  EXPECT_FALSE(fs::exists(base / "run" / "epochs.jsonl"));
  EXPECT_TRUE(fs::is_empty(after.checkpoints()));
  EXPECT_EQ(read(base / "run" / "notes.txt"), "mine");
}

TEST_F(RunFolderTest, AFolderOfOtherThingsWillDo) {
  write(base / "notes.txt", "mine");
  EXPECT_EQ(complaint([&] { RunFolder{base}; }), "none");
}

TEST_F(RunFolderTest, APathThatIsAFile) {
  write(base / "file", "");
  EXPECT_EQ(complaint([&] { RunFolder{base / "file"}; }),
            (base / "file").string() + " is a file, expected a folder for the run");
  EXPECT_EQ(complaint([&] { RunFolder{base / "file" / "run"}; }),
            (base / "file" / "run").string() + ": cannot create the folder: Not a directory");
}

TEST_F(RunFolderTest, AFolderThatCannotBeWritten) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  fs::create_directories(base / "run" / "checkpoints");
  fs::permissions(base / "run", fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(complaint([&] { RunFolder{base / "run"}; }),
            (base / "run").string() + ": cannot write into the folder: Permission denied");
  EXPECT_EQ(complaint([&] { RunFolder{base / "run" / "inner"}; }),
            (base / "run" / "inner").string() + ": cannot create the folder: Permission denied");
  fs::permissions(base / "run", fs::perms::owner_all);
}

TEST_F(RunFolderTest, AFullDiskLeavesWholeLines) {
  RunFolder folder(base / "run");
  folder.write_config({{"model", "cnn"}});
  folder.append_epoch({{"epoch", 1}});
  const std::string before = read(folder.path() / "epochs.jsonl");
  const std::string told = on_a_full_disk(before.size() + 20, [&] {
    folder.append_epoch({{"epoch", 2}, {"reason", std::string(100, 'x')}});
  });
  EXPECT_EQ(told, (folder.path() / "epochs.jsonl").string() + ": cannot append: File too large");
  EXPECT_EQ(read(folder.path() / "epochs.jsonl"), before);
  EXPECT_EQ(read_run(folder.path()).epochs.size(), 1U);
}

TEST_F(RunFolderTest, AFullDiskKeepsTheOldFile) {
  RunFolder folder(base / "run");
  folder.write_config({{"model", "cnn"}});
  const std::string told = on_a_full_disk(10, [&] {
    folder.write_config({{"model", std::string(100, 'x')}});
  });
  EXPECT_EQ(told, (folder.path() / "config.json").string() + ": cannot write: File too large");
  EXPECT_EQ(read_run(folder.path()).config["model"], "cnn");
  // config.json, epochs.jsonl, checkpoints/
  EXPECT_EQ(files_in(folder.path()), 3U) << "a temporary file is left";
}

TEST_F(RunFolderTest, ALineCutShortIsRemovedByTheNext) {
  RunFolder folder(base / "run");
  folder.append_epoch({{"epoch", 1}});
  std::ofstream(folder.path() / "epochs.jsonl", std::ios::app)
      << "{\"epoch\":2,\"layers\":[" << std::string(9000, '1');
  folder.append_epoch({{"epoch", 3}});
  EXPECT_EQ(read(folder.path() / "epochs.jsonl"), "{\"epoch\":1}\n{\"epoch\":3}\n");
}

TEST_F(RunFolderTest, AWholeLineWithoutNewlineIsKept) {
  RunFolder folder(base / "run");
  write(folder.path() / "epochs.jsonl", "{\"epoch\":1}\n{\"epoch\":2}");
  folder.append_epoch({{"epoch", 3}});
  EXPECT_EQ(read(folder.path() / "epochs.jsonl"), "{\"epoch\":1}\n{\"epoch\":2}\n{\"epoch\":3}\n");
}

TEST_F(RunFolderTest, ALongCutLineAloneIsRemovedToo) {
  write(base / "lines", std::string(20000, '{'));
  append_line(base / "lines", "{}");
  EXPECT_EQ(read(base / "lines"), "{}\n");
}

TEST_F(RunFolderTest, BytesThatAreNotUtf8DoNotStopTheRecord) {
  RunFolder folder(base / "run");
  folder.write_config({{"name", "\xff"}});
  EXPECT_EQ(read_run(folder.path()).config["name"], "\xEF\xBF\xBD");
}

TEST_F(RunFolderTest, KeepsEpochsUpToACheckpoint) {
  RunFolder folder(base / "run");
  folder.write_config(Json::object());
  for (int epoch = 1; epoch <= 4; ++epoch) folder.append_epoch({{"epoch", epoch}});
  folder.write_summary(Json::object());
  folder.keep_epochs(2);
  const accordion::Run run = read_run(folder.path());
  ASSERT_EQ(run.epochs.size(), 2U);
  EXPECT_EQ(run.epochs[1]["epoch"], 2);
  EXPECT_FALSE(run.summary);
  EXPECT_EQ(complaint([&] { folder.keep_epochs(3); }),
            (folder.path() / "epochs.jsonl").string() + ": has 2 epochs, expected at least 3");
}

TEST_F(RunFolderTest, DefaultNamesAreUnique) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const std::time_t now = 1'700'000'000;
  const fs::path runs = base / "runs";
  EXPECT_EQ(make_default_folder(runs, "cifar10", "resnet18", now), runs / "cifar10-resnet18-20231114-221320");
  EXPECT_EQ(make_default_folder(runs, "cifar10", "resnet18", now),
            runs / "cifar10-resnet18-20231114-221320-2");
  EXPECT_EQ(make_default_folder(runs, "cifar10", "resnet18", now),
            runs / "cifar10-resnet18-20231114-221320-3");
  write(base / "file", "");
  EXPECT_NE(complaint([&] { make_default_folder(base / "file", "a", "b", now); }), "none");
}

}  // namespace
}  // namespace accordion
