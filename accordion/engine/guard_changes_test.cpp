// How soon the guard meets a network that changes, and that it takes nothing else for a change.
#include <gtest/gtest.h>

#include <algorithm>

#include "accordion/engine/guard_testing.h"

namespace accordion {
namespace {

// Plain gradients are hidden behind backward, or take nearly five times as long as it does.
const World kWide{.seconds_per_byte = 5e-8}, kNarrow{.seconds_per_byte = 5e-7};

World uneven(World world) {
  world.noise = 0.25;
  return world;
}

// Probes of more than a single dense step, which something gave that was taken for a change.
int probes(const std::vector<GuardEvent>& events) {
  int probes = 0;
  for (std::size_t i = 0; i < events.size(); ++i)
    probes += events[i].event == "probe" && events[i].reason.rfind("to ", 0) != 0 &&
              events[i].reason != "time for another attempt" && (i == 0 || events[i - 1].event != "probe");
  return probes;
}

// At most fourteen slow steps until a glance has a median of them, five of each other kind, and two dense ones: those before are known,
// and the way back is not needed.
TEST(GuardChanges, ALinkThatSlowsDownIsMetWithinAGlanceAndHalfAProbe) {
  for (int offset = 0; offset < 50; offset += 3)
    on_ranks([&](Communicator& comm) {
      Rank rank(comm, perf::Goal::kFastest);
      EXPECT_EQ(rank.run(120 + offset, kWide), kDenseAll);
      EXPECT_EQ(rank.run(27, kNarrow), (std::vector{1, 1, kDense})) << "changed after " << 120 + offset;
      for (const auto& levels : rank.log()) agreed(comm, levels);
    });
}

// Messages have become faster, which is looked at every ten steps; two dense steps then tell, and half a probe.
TEST(GuardChanges, ALinkThatRecoversIsMetWithinAWindow) {
  for (const int offset : {0, 100, 200, 300})
    on_ranks([&](Communicator& comm) {
      Rank rank(comm, perf::Goal::kFastest);
      EXPECT_EQ(rank.run(3000 + offset, kNarrow)[0], 1);
      rank.run(GuardWatch::kWindow, kWide);
      EXPECT_EQ(rank.log().back(), kDenseAll) << "changed after " << 3000 + offset;
      for (const auto& levels : rank.log()) agreed(comm, levels);
    });
}

// One that was short by chance is followed by another, and that is all.
TEST(GuardChanges, ASingleShortDenseStepIsNoChange) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kFastest);
    rank.run(1000, kNarrow);
    const int plain = rank.plain_steps();
    while (rank.plain_steps() == plain) rank.run(1, rank.next_is_plain() ? kWide : kNarrow);
    EXPECT_TRUE(rank.next_is_plain());
    rank.run(1, kNarrow);
    EXPECT_FALSE(rank.next_is_plain());
    rank.run(1000, kNarrow);
    EXPECT_EQ(rank.log().back()[0], 1);
    EXPECT_EQ(probes(record_of(rank, comm)), 1);
  });
}

TEST(GuardChanges, UnevenStepsAreNoChange) {
  for (const World& world : {uneven(kWide), uneven(kNarrow)})
    for (const perf::Goal goal : {perf::Goal::kHarmless, perf::Goal::kFastest})
      on_ranks([&](Communicator& comm) {
        Rank rank(comm, goal);
        rank.run(600, world);
        record_of(rank, comm);
        rank.run(5000, world);
        EXPECT_EQ(probes(record_of(rank, comm)), 0);
        agreed(comm, rank.log().back());
      });
}

// Steps that are slow now and then, ten or so in a row: each time it takes more of them to be believed.
TEST(GuardChanges, AlarmsForNothingBecomeRare) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kFastest);
    rank.run(120, kWide);
    record_of(rank, comm);
    World busy = kWide;
    busy.surprise = 2;
    for (int k = 0; k < 50; ++k) {
      rank.run(12, busy);
      rank.run(88, kWide);
    }
    EXPECT_LE(probes(record_of(rank, comm)), 3);
    EXPECT_EQ(rank.log().back(), kDenseAll);
  });
}

// A seventh slower for a window, and not for the next: one probe says that it changes nothing.
TEST(GuardChanges, WindowsThatAreOffNowAndThenAreProbedOnce) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kFastest);
    rank.run(200, kNarrow);
    record_of(rank, comm);
    World busy = kNarrow;
    busy.surprise = 1.15;
    for (int k = 0; k < 20; ++k) {
      rank.run(55, busy);
      rank.run(95, kNarrow);
    }
    EXPECT_LE(probes(record_of(rank, comm)), 2);
    EXPECT_EQ(rank.log().back()[0], 1);
  });
}

// Steps have become shorter, and a dense one says that it is not the link: nothing else could be chosen, so nothing is probed.
TEST(GuardChanges, StepsThatBecomeShorterTakeASingleDenseStep) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kFastest);
    World busy = kNarrow;
    busy.surprise = 1.3;
    rank.run(1000, busy);
    EXPECT_EQ(rank.log().back()[0], 1);
    record_of(rank, comm);
    const int plain = rank.plain_steps();
    rank.run(150, kNarrow);
    EXPECT_EQ(probes(record_of(rank, comm)), 0);
    EXPECT_GE(rank.plain_steps(), plain + 1);
    EXPECT_LE(rank.plain_steps(), plain + 2);
    agreed(comm, rank.log().back());
  });
}

TEST(GuardChanges, DenseStepsTakeAHundredthOfTheTime) {
  for (const World& world : {kNarrow, uneven(kNarrow), World{.seconds_per_byte = 2e-7}})
    on_ranks([&](Communicator& comm) {
      Rank rank(comm, perf::Goal::kFastest);
      rank.run(100, world);
      const std::size_t from = rank.log().size();
      rank.run(20000, world);
      double dense = 0, other = 0, dense_steps = 0;
      for (std::size_t s = from; s < rank.log().size(); ++s) {
        (rank.plain()[s] ? dense : other) += rank.step_seconds()[s];
        dense_steps += rank.plain()[s];
      }
      const double without = other / (20000 - dense_steps);
      EXPECT_GT(dense_steps, 10);
      EXPECT_LE(dense - dense_steps * without, 0.0101 * (dense + other))
          << world.seconds_per_byte << ' ' << world.noise << ' ' << dense_steps;
    });
}

// Dense steps were slow while they were probed, and compressed ones are not faster.
TEST(GuardChanges, AFalseTurnDoesNotLast) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kFastest);
    World world{.seconds_per_byte = 1e-11, .encode_per_value = 2e-7, .dense_surprise = 1.3};
    rank.run(35, world);
    EXPECT_NE(rank.log().back(), kDenseAll);
    world.dense_surprise = 1;
    rank.run(200, world);
    EXPECT_EQ(rank.log().back(), kDenseAll);
    EXPECT_LE(rank.plain_steps(), 10 + 7);
    agreed(comm, rank.log().back());
  });
}

// Compressed steps are 4 % slower, or a tenth shorter, which uneven steps hide: the more, the longer they stay slow.
TEST(GuardChanges, HarmlessIsSeldomWrongInNearTies) {
  World noisy = kFast, bursts = kFast;
  noisy.noise = 0.1;
  bursts.noise = 0.05;
  bursts.burst = 1.3;
  for (const World& each : {noisy, bursts})
    for (const bool slower : {true, false})
      on_ranks([&](Communicator& comm) {
        Rank rank(comm, perf::Goal::kHarmless);
        World world = each;
        world.codec_surprise = slower ? 1.04 : 0.9;
        int wrong = 0;
        for (int k = 0; k < 25; ++k) {
          rank.guard().start_anew();
          rank.run(800, world);
          // Single dense steps are among compressed ones.
          wrong += (std::count(rank.log().end() - 10, rank.log().end(), kDenseAll) > 5) != slower;
        }
        EXPECT_LE(wrong, 2) << (slower ? "slower" : "shorter") << ", " << each.burst;
      });
}

TEST(GuardChanges, AreReplayed) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kFastest);
    for (int k = 0; k < 2; ++k) {
      rank.run(120, uneven(kWide));
      rank.run(800, uneven(kNarrow));
      rank.run(700, uneven(kWide));
    }
    Rank again(comm, record_of(rank, comm));
    again.run(static_cast<int>(rank.log().size()), kWide);
    EXPECT_EQ(again.log(), rank.log());
    EXPECT_EQ(again.plain(), rank.plain());
  });
}

}  // namespace
}  // namespace accordion
