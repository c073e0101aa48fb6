#include "accordion/run/checkpoint_clock.h"

#include <gtest/gtest.h>

#include "accordion/base/error.h"

namespace accordion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const CheckpointClock::Clock::time_point kStart{};

CheckpointClock clock_of(const char* text) {
  return {parse_checkpoint_every("train", text), kStart};
}

TEST(CheckpointClock, StepsEpochsAndMinutes) {
  const CheckpointClock steps = clock_of("4steps"), epochs = clock_of("2epochs");
  EXPECT_FALSE(steps.due(3, true, 1, kStart));
  EXPECT_TRUE(steps.due(4, false, 1, kStart));
  EXPECT_FALSE(epochs.due(4, true, 1, kStart));
  EXPECT_FALSE(epochs.due(4, false, 2, kStart));
  EXPECT_TRUE(epochs.due(4, true, 2, kStart));
  CheckpointClock minutes = clock_of("0.5min");
  EXPECT_FALSE(minutes.due(1, true, 1, kStart + seconds(29)));
  EXPECT_TRUE(minutes.due(1, false, 1, kStart + seconds(30)));
  minutes.wrote(kStart + seconds(30), kStart + seconds(31));
  EXPECT_FALSE(minutes.due(2, false, 1, kStart + seconds(60)));
  EXPECT_TRUE(minutes.due(2, false, 1, kStart + seconds(61)));
  EXPECT_FALSE(clock_of("never").due(1, true, 1, kStart + seconds(1000)));
}

// However long epochs are, and however long writing takes.
TEST(CheckpointClock, AutoTakesAtMostAHundredthOfTheTime) {
  for (const int epoch_ms : {10, 300, 5000, 100000})
    for (const int write_ms : {1, 40, 2000}) {
      CheckpointClock clock = clock_of("auto");
      auto now = kStart;
      milliseconds writing{0}, since_first{0};
      int written = 0;
      for (int epoch = 1; epoch <= 1000; ++epoch) {
        now += milliseconds(epoch_ms);
        if (written > 0) since_first += milliseconds(epoch_ms);
        EXPECT_FALSE(clock.due(epoch, false, epoch, now));
        if (!clock.due(epoch, true, epoch, now)) continue;
        clock.wrote(now, now + milliseconds(write_ms));
        now += milliseconds(write_ms);
        if (written++ > 0) writing += milliseconds(write_ms);
      }
      EXPECT_GE(written, 1);
      EXPECT_LE(100 * writing, since_first) << epoch_ms << " ms epochs, " << write_ms << " ms to write";
    }
}

TEST(CheckpointClock, RefusesWhatItCannotRead) {
  for (const char* text :
       {"", "5", "steps", "0steps", "-1epoch", "1.5steps", "1e99min", "nanmin", "3 min", "1hour"})
    EXPECT_THROW(parse_checkpoint_every("train", text), UsageError) << text;
}

}  // namespace
}  // namespace accordion
