#include "accordion/launch/settings.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "accordion/base/error.h"

namespace accordion {
namespace {

using Variables = std::map<std::string, std::string>;

Variables added_to(const Variables& present) {
  return worker_environment(3, [&](const char* name) -> const char* {
    const auto found = present.find(name);
    return found == present.end() ? nullptr : found->second.c_str();
  });
}

TEST(Settings, AddsWhatIsMissing) {
  const Variables added = added_to({});
  EXPECT_EQ(added.at("OMP_NUM_THREADS"), "3");
  EXPECT_EQ(added.at("OPENBLAS_NUM_THREADS"), "3");
  EXPECT_NE(added.at("GLIBC_TUNABLES").find("glibc.malloc.mmap_max=0"), std::string::npos);
}

TEST(Settings, KeepsTheUsersChoices) {
  EXPECT_EQ(added_to({{"GLIBC_TUNABLES", "glibc.malloc.check=1"}}).count("GLIBC_TUNABLES"), 0U);
  // One choice of threads holds for OpenBLAS too, which would otherwise contradict it.
  const Variables added = added_to({{"OMP_NUM_THREADS", "1"}});
  EXPECT_EQ(added.size(), 1U);
  EXPECT_EQ(added.count("GLIBC_TUNABLES"), 1U);
  EXPECT_EQ(added_to({{"OPENBLAS_NUM_THREADS", "1"}}).count("OPENBLAS_NUM_THREADS"), 0U);
}

TEST(Settings, ThreadsPerRank) {
  EXPECT_EQ(threads_per_rank(8, 2), 4);
  EXPECT_EQ(threads_per_rank(8, 3), 2);
  EXPECT_EQ(threads_per_rank(2, 4), 1);
  EXPECT_EQ(threads_per_rank(2, 1), 2);
}

TEST(Settings, GivenThreadsAreTakenOrRefused) {
  const auto threads = [](const char* given) {
    return threads_of_rank(
        {}, [&](const char* name) { return std::string_view(name) == "OMP_NUM_THREADS" ? given : nullptr; });
  };
  EXPECT_EQ(threads("3"), 3);
  EXPECT_EQ(threads("4,2"), 4);
  EXPECT_GE(threads(""), 1);
  for (const char* garbage : {"abc", "0", "-1", "2x", "99999999999", "2000"}) {
    try {
      threads(garbage);
      ADD_FAILURE() << garbage;
    } catch (const UsageError& error) {
      EXPECT_EQ(error.what(),
                "OMP_NUM_THREADS=" + std::string(garbage) + ", expected a whole number from 1 to 1024");
    }
  }
}

TEST(Settings, CoresFollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(available_cores(), CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(available_cores(), 1);
  ::sched_setaffinity(0, sizeof before, &before);
}

constexpr const char* kReportTo = "SETTINGS_TEST_REPORT";

// Not a test by itself: the program that ExecutesItselfOnce runs, which comes by here a second time.
TEST(Settings, DISABLED_Launched) {
  const char* path = ::getenv(kReportTo);
  ASSERT_TRUE(path);
  std::ofstream report(path, std::ios::app);
  report << "run " << (::getenv("OMP_NUM_THREADS") ? ::getenv("OMP_NUM_THREADS") : "unset") << std::endl;
  std::vector<std::string> arguments = {"launch_test", "--gtest_filter=Settings.DISABLED_Launched",
                                        "--gtest_also_run_disabled_tests", "--", "an argument"};
  if (::getenv("SETTINGS_TEST_TOO_LONG")) arguments.push_back(std::string(1 << 22, 'x'));
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  if (::getenv("SETTINGS_TEST_FORGETFUL")) ::unsetenv("OMP_NUM_THREADS");
  const bool set = ensure_settings(7, argv.data());
  std::ifstream command("/proc/self/cmdline");
  const std::string all((std::istreambuf_iterator<char>(command)), {});
  report << (set ? "set" : "not set")
         << (all.find("an argument") != std::string::npos ? " with arguments" : "")
         << (::getenv("ACCORDION_RUN_AGAIN") ? " guard left" : "") << std::endl;
}

std::string launched(const char* flaw = nullptr) {
  std::string path = ::testing::TempDir() + "settings_test.XXXXXX";
  ::close(::mkstemp(path.data()));
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GLIBC_TUNABLES"}) ::unsetenv(name);
    ::setenv(kReportTo, path.c_str(), 1);
    if (flaw) ::setenv(flaw, "1", 1);
    ::alarm(10);  // Ends it if it should run itself for ever.
    ::execl("/proc/self/exe", "launch_test", "--gtest_filter=Settings.DISABLED_Launched",
            "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  std::ifstream report(path);
  std::string text((std::istreambuf_iterator<char>(report)), {});
  ::unlink(path.c_str());
  return text;
}

TEST(Settings, ExecutesItselfOnceWithTheSameArguments) {
  EXPECT_EQ(launched(), "run unset\nrun 7\nset with arguments\n");
}

TEST(Settings, AVariableThatDoesNotStickMakesNoLoop) {
  EXPECT_EQ(launched("SETTINGS_TEST_FORGETFUL"), "run unset\nrun 7\nnot set with arguments\n");
}

TEST(Settings, GoesOnWhenItCannotExecute) {
  EXPECT_EQ(launched("SETTINGS_TEST_TOO_LONG"), "run unset\nnot set\n");
}

}  // namespace
}  // namespace accordion
