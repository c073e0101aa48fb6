#include "accordion/comm/pace.h"

#include <gtest/gtest.h>

#include <thread>

namespace accordion {
namespace {

constexpr std::size_t kMany = 1 << 20;

TEST(Pace, FollowsWhatArrives) {
  Pace slow, fast;
  const std::size_t unknown = slow.bytes_ahead();
  for (int i = 0; i < 20; ++i) {
    slow.learn(kMany, kMany / 20e6);
    fast.learn(kMany, kMany / 1e9);
  }
  EXPECT_LT(slow.bytes_ahead(), unknown);
  EXPECT_GT(fast.bytes_ahead(), unknown);
  EXPECT_NEAR(static_cast<double>(fast.bytes_ahead()) / static_cast<double>(slow.bytes_ahead()), 50, 0.1)
      << "as many seconds ahead, whatever the link";
}

TEST(Pace, ForgetsAnOldLink) {
  Pace pace;
  pace.learn(kMany, kMany / 1e9);
  const std::size_t fast = pace.bytes_ahead();
  pace.learn(kMany, kMany / 20e6);
  EXPECT_LT(pace.bytes_ahead(), fast / 2);
}

TEST(Pace, KeepsALinkBusyHoweverSlow) {
  Pace pace;
  for (int i = 0; i < 20; ++i) pace.learn(kMany, 1000);
  EXPECT_GE(pace.bytes_ahead(), 65536u);
}

// A few bytes tell how long a process took to wake, and no time at all tells nothing.
TEST(Pace, LearnsNothingFromLittle) {
  Pace pace;
  const std::size_t unknown = pace.bytes_ahead();
  pace.learn(1000, 1);
  pace.learn(kMany, 0);
  pace.learn(0, 1);
  EXPECT_EQ(pace.bytes_ahead(), unknown);
}

TEST(Stopwatch, DoesNotTimeTheFirstMessage) {
  using std::chrono::milliseconds;
  Pace pace;
  const std::size_t unknown = pace.bytes_ahead();
  { Stopwatch nothing(pace); }
  {
    Stopwatch watch(pace);
    watch.add(kMany);
    std::this_thread::sleep_for(milliseconds(50));
    watch.add(10);
  }
  EXPECT_EQ(pace.bytes_ahead(), unknown) << "ten bytes arrived in that time";
  {
    Stopwatch watch(pace);
    watch.add(10);
    std::this_thread::sleep_for(milliseconds(50));
    watch.add(kMany);
  }
  EXPECT_LT(pace.bytes_ahead(), unknown / 2) << "20 MB/s at most";
}

}  // namespace
}  // namespace accordion
