#include "accordion/launch/supervise.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <thread>

#include "accordion/base/error.h"

namespace accordion {
namespace {

WorkerSpec shell(const std::string& script, std::map<std::string, std::string> environment = {}) {
  return {{"/bin/sh", "-c", script}, std::move(environment)};
}

std::size_t open_files() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Whether the process ends soon, be it as a zombie that its new parent has not reaped yet.
bool goes(pid_t pid) {
  for (int tries = 0; tries < 200; ++tries) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state = "X";
    stat >> number >> name >> state;
    if (state == "X" || state == "Z") return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

struct Result {
  Ending ending;
  std::string out, err;
  double seconds;
};

class Supervise : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "supervise.XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void wait_for(const std::string& name) const {
    for (int tries = 0; tries < 1000 && !std::filesystem::exists(path(name)); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(std::filesystem::exists(path(name))) << name;
  }

  Result run(const std::vector<WorkerSpec>& workers, SuperviseOptions options = {}) const {
    const std::size_t files = open_files();
    const auto start = std::chrono::steady_clock::now();
    Result result;
    {
      const UniqueFd out(::open(path("out").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
      const UniqueFd err(::open(path("err").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
      options.out = out.get();
      options.err = err.get();
      result.ending = supervise(workers, options);
    }
    result.seconds = seconds_since(start);
    result.out = read("out");
    result.err = read("err");
    EXPECT_EQ(open_files(), files);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
    return result;
  }

  // Supervises in a process of its own, which `meddle` may signal; what comes back is the Ending.
  Ending run_apart(const std::vector<WorkerSpec>& workers, const SuperviseOptions& given,
                   const std::function<void(pid_t)>& meddle) const {
    const pid_t pid = ::fork();
    if (pid == 0) {
      SuperviseOptions options = given;
      options.out = ::open(path("out").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
      options.err = ::open(path("err").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
      const Ending ending = supervise(workers, options);
      std::ofstream(path("ending")) << ending.status << ' ' << ending.interrupted << ' ' << ending.message;
      ::_exit(0);
    }
    meddle(pid);
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    std::istringstream told(read("ending"));
    Ending ending;
    told >> ending.status >> ending.interrupted;
    told.get();
    std::getline(told, ending.message, '\0');
    return ending;
  }

 private:
  std::string folder_;
};

TEST_F(Supervise, RankZeroAsItIsOthersWithPrefix) {
  const Result result =
      run({shell("printf 'a\\r\\033[Kb'; printf 'e0\\n' >&2"),
           shell("sleep 0.3; echo one; echo; echo e1 >&2"), shell("sleep 0.6; printf 'no newline'")});
  EXPECT_EQ(result.ending.status, 0);
  EXPECT_EQ(result.ending.message, "");
  EXPECT_EQ(result.out, "a\r\033[Kb\n[rank 1] one\n[rank 1] \n[rank 2] no newline\n");
  EXPECT_EQ(result.err, "e0\n[rank 1] e1\n");
}

TEST_F(Supervise, OthersWaitForRankZerosLineToEnd) {
  const Result result =
      run({shell("printf ab; sleep 0.04; echo cd; sleep 0.3"), shell("sleep 0.02; echo x")});
  EXPECT_TRUE(result.out == "abcd\n[rank 1] x\n" || result.out == "[rank 1] x\nabcd\n") << result.out;
}

TEST_F(Supervise, RankZeroIsShownAtOnce) {
  ::mkfifo(path("go").c_str(), 0600);
  std::thread watcher([&] {
    for (int tries = 0; tries < 500 && read("out") != "\r10 %"; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(read("out"), "\r10 %");
    std::ofstream(path("go")) << "on\n";
  });
  const Result result = run({shell("printf '\\r10 %%'; read line < " + path("go") + "; printf '\\r99 %%'")});
  watcher.join();
  EXPECT_EQ(result.out, "\r10 %\r99 %");
}

TEST_F(Supervise, EachWorkerHasItsEnvironmentAndReadsNothing) {
  ::setenv("SUPERVISE_TEST_SHARED", "parent", 1);
  const Result result =
      run({shell("cat; echo $RANK $SUPERVISE_TEST_SHARED", {{"RANK", "0"}}),
           shell("echo $RANK $SUPERVISE_TEST_SHARED", {{"RANK", "1"}, {"SUPERVISE_TEST_SHARED", "own"}})});
  EXPECT_NE(result.out.find("0 parent\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("[rank 1] 1 own\n"), std::string::npos) << result.out;
}

TEST_F(Supervise, EarlySuccessIsFine) {
  const Result result = run({shell("sleep 0.4; echo late"), shell("exit 0")});
  EXPECT_EQ(result.ending.status, 0);
  EXPECT_EQ(result.out, "late\n");
}

TEST_F(Supervise, DeathBySignalStopsTheOthers) {
  const Result result = run({shell("sleep 30"), shell("sleep 30"),
                             shell("echo one >&2; printf 'two\\nthree' >&2; sleep 0.2; kill -9 $$")});
  EXPECT_EQ(result.ending.status, 1);
  EXPECT_EQ(result.ending.interrupted, 0);
  EXPECT_EQ(result.ending.message,
            "rank 2 was killed by signal 9 (Killed); its last words:\n  one\n  two\n  three");
  EXPECT_LT(result.seconds, 4);
}

TEST_F(Supervise, ExitStatusAndLastWords) {
  const Result result = run({shell("sleep 30"), shell("echo fine; echo 'disk is full' >&2; exit 1")});
  EXPECT_EQ(result.ending.status, 1);
  EXPECT_EQ(result.ending.message, "rank 1 exited with status 1; its last words: disk is full");
}

TEST_F(Supervise, OnlyTheLastFewWords) {
  const Result result =
      run({shell("i=0; while [ $i -lt 100 ]; do echo line $i >&2; i=$((i+1)); done; exit 3")});
  EXPECT_EQ(
      result.ending.message,
      "rank 0 exited with status 3; its last words:\n  line 95\n  line 96\n  line 97\n  line 98\n  line 99");
}

TEST_F(Supervise, AProgressBarIsNotRepeatedInLastWords) {
  const Result result = run({shell("printf '\\r10 %%\\r20 %%\\r      \\rout of memory\\n' >&2; exit 1")});
  EXPECT_EQ(result.ending.message, "rank 0 exited with status 1; its last words: out of memory");
}

TEST_F(Supervise, AUsageErrorStaysOne) {
  EXPECT_EQ(run({shell("exit 2"), shell("sleep 30")}).ending.status, 2);
  EXPECT_EQ(run({shell("exit 3"), shell("sleep 30")}).ending.message, "rank 0 exited with status 3");
}

// The peers of a dead rank complain at once, and may be seen dead before it.
TEST_F(Supervise, TheKilledOneIsNamedNotItsMourners) {
  const std::string mourner =
      "while [ ! -e " + path("gone") + " ]; do sleep 0.01; done; echo 'lost a peer' >&2; exit 1";
  const Result result =
      run({shell(mourner), shell(mourner), shell(": > " + path("gone") + "; sleep 0.05; kill -9 $$")});
  EXPECT_EQ(result.ending.message, "rank 2 was killed by signal 9 (Killed)");
}

TEST_F(Supervise, TheFirstToExitIsNamed) {
  const Result result = run({shell("sleep 30; exit 0"), shell("echo cause >&2; exit 1"),
                             shell("trap 'echo consequence >&2; exit 2' TERM; sleep 30 & wait")});
  EXPECT_EQ(result.ending.message, "rank 1 exited with status 1; its last words: cause");
  EXPECT_EQ(result.ending.status, 1);
}

TEST_F(Supervise, TheDeafAreKilledAfterTheGracePeriod) {
  const Result result = run({shell("trap '' TERM; while :; do sleep 0.05; done"), shell("sleep 0.2; exit 1")},
                            {.grace_seconds = 0.5});
  EXPECT_EQ(result.ending.message, "rank 1 exited with status 1");
  EXPECT_GT(result.seconds, 0.6);
  EXPECT_LT(result.seconds, 4);
}

TEST_F(Supervise, AGrandchildHoldingThePipesDelaysNothing) {
  const Result result = run({shell("echo before; setsid sleep 6 & echo after"),
                             shell("echo x; sleep 20 & echo $! > " + path("grandchild") + "; echo y")});
  EXPECT_EQ(result.ending.status, 0);
  EXPECT_LT(result.seconds, 4);
  for (const char* line : {"before\n", "after\n", "[rank 1] x\n", "[rank 1] y\n"})
    EXPECT_NE(result.out.find(line), std::string::npos) << line << " not in " << result.out;
  EXPECT_TRUE(goes(std::stoi(read("grandchild")))) << "a rank's command outlives it";
}

TEST_F(Supervise, AProgramThatCannotStartIsNamed) {
  const std::size_t files = open_files();
  try {
    supervise({shell("echo $$ > " + path("pid") + "; sleep 30"), {{"/no/such/program"}, {}}});
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cannot start \"/no/such/program\": No such file or directory");
  }
  EXPECT_EQ(open_files(), files);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST_F(Supervise, EightTalkersLoseNothing) {
  constexpr int kLines = 20000;
  const std::string program =
      "BEGIN { for (i = 0; i < n; ++i) { print \"line \" i; fflush(); if (i % 10 == 0) print i > "
      "\"/dev/stderr\" } }";
  const WorkerSpec talker = {{"awk", "-v", "n=20000", program}, {}};
  const std::vector<WorkerSpec> workers(8, talker);
  const Result result = run(workers);
  EXPECT_EQ(result.ending.status, 0);
  std::array<int, 8> next{};
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    int rank = 0;
    if (line.starts_with("[rank ")) {
      rank = line.at(6) - '0';
      line.erase(0, 9);
    }
    ASSERT_EQ(line, "line " + std::to_string(next.at(rank)++)) << "of rank " << rank;
  }
  for (const int count : next) EXPECT_EQ(count, kLines);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 8 * kLines / 10);
}

TEST_F(Supervise, ASlowReaderLosesNothing) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  std::size_t bytes = 0;
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::array<char, 65536> buffer;
    for (ssize_t got; (got = ::read(read_end.get(), buffer.data(), buffer.size())) > 0;) bytes += got;
  });
  const Ending ending =
      supervise({shell("yes zzzz | head -c 3000000"), shell("head -c 3000000 /dev/zero | tr '\\0' '\\n'")},
                {.out = write_end.get()});
  write_end.reset();
  reader.join();
  EXPECT_EQ(ending.status, 0);
  EXPECT_EQ(bytes, 3000000U + 3000000U * 10);
}

TEST_F(Supervise, ADeathIsSeenWhileNobodyReads) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  Ending ending;
  std::thread supervisor([&] {
    ending = supervise({shell("echo $$ > " + path("pid.new") + "; mv " + path("pid.new") + " " + path("pid") +
                              "; exec yes on and on"),
                        shell("sleep 0.7; exit 1")},
                       {.out = write_end.get()});
    write_end.reset();
  });
  wait_for("pid");
  const pid_t talker = std::stoi(read("pid"));
  int tries = 0;
  while (::kill(talker, 0) == 0 && ++tries < 500) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LT(tries, 500) << "the talker outlived its peer";
  std::array<char, 65536> buffer;
  std::size_t bytes = 0;
  for (ssize_t got; (got = ::read(read_end.get(), buffer.data(), buffer.size())) > 0;) bytes += got;
  supervisor.join();
  EXPECT_LT(bytes, 3000000U) << "what nobody reads piles up";
  EXPECT_EQ(ending.message, "rank 1 exited with status 1");
}

TEST_F(Supervise, SigtermIsPassedOn) {
  const std::string script =
      "trap 'echo stopping; exit 0' TERM; : > " + path("ready") + "$RANK; sleep 30 & wait";
  const Ending ending =
      run_apart({shell(script, {{"RANK", "0"}}), shell(script, {{"RANK", "1"}})}, {}, [&](pid_t pid) {
        wait_for("ready0");
        wait_for("ready1");
        ::kill(pid, SIGTERM);
      });
  EXPECT_EQ(ending.status, 0);
  EXPECT_EQ(ending.interrupted, SIGTERM);
  EXPECT_EQ(ending.message, "");
  EXPECT_EQ(read("out").size(), std::string("stopping\n[rank 1] stopping\n").size());
}

TEST_F(Supervise, RanksThatDieOfThePassedSignalDidNotFail) {
  const Ending ending = run_apart({shell(": > " + path("ready") + "; sleep 30")}, {}, [&](pid_t pid) {
    wait_for("ready");
    ::kill(pid, SIGINT);
  });
  EXPECT_EQ(ending.status, 1);
  EXPECT_EQ(ending.interrupted, SIGINT);
  EXPECT_EQ(ending.message, "stopped by signal 2 (Interrupt)");
}

TEST_F(Supervise, ASecondInterruptKillsAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const Ending ending = run_apart(
      {shell("trap '' TERM; : > " + path("ready") + "; while :; do sleep 0.05; done")}, {}, [&](pid_t pid) {
        wait_for("ready");
        ::kill(pid, SIGINT);
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
        EXPECT_EQ(::kill(pid, 0), 0);
        EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0) << "one interrupt was enough";
        ::kill(pid, SIGINT);
      });
  EXPECT_LT(seconds_since(start), 5);
  EXPECT_EQ(ending.interrupted, SIGINT);
  EXPECT_EQ(ending.message, "stopped by signal 2 (Interrupt); had to be killed: rank 0");
}

TEST_F(Supervise, WorkersDieWithTheirSupervisor) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    supervise({shell("echo $$ > " + path("pid.new") + "; mv " + path("pid.new") + " " + path("pid") +
                     "; exec sleep 30")});
    ::_exit(0);
  }
  wait_for("pid");
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  const pid_t worker = std::stoi(read("pid"));
  EXPECT_TRUE(goes(worker));
}

TEST_F(Supervise, HandlersAreRestored) {
  struct sigaction before {
  }, after{};
  ::sigaction(SIGINT, nullptr, &before);
  run({shell("exit 0")});
  ::sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace accordion
