// The guard on real ranks with an artificial clock, link and codec: what it decides, checks and probes, on all ranks alike.
#include "accordion/engine/guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "accordion/engine/guard_testing.h"
#include "accordion/engine/steering.h"

namespace accordion {
namespace {

TEST(Guard, ASlowLinkIsWorthCompressingAndADearCodecIsNot) {
  for (const perf::Goal goal : {perf::Goal::kHarmless, perf::Goal::kFastest})
    on_ranks([&](Communicator& comm) {
      Rank rank(comm, goal);
      const std::vector<int> slow = rank.run(120, kSlow);
      agreed(comm, slow);
      EXPECT_EQ(slow, (std::vector{1, 1, kDense})) << "the vector is not worth compressing";
      if (comm.rank() == 0) {
        EXPECT_EQ(rank.guard().reason(0).rfind("strong: saves ", 0), 0u) << rank.guard().reason(0);
      }
      Rank other(comm, goal);
      agreed(comm, other.run(120, kDear));
      EXPECT_EQ(other.log().back(), kDenseAll);
    });
}

// Traffic that is hidden anyway: fastest sends all of it, harmless as little as it may.
TEST(Guard, WhatIsHiddenBehindBackward) {
  on_ranks([](Communicator& comm) {
    Rank fastest(comm, perf::Goal::kFastest), harmless(comm, perf::Goal::kHarmless);
    EXPECT_EQ(fastest.run(120, kFast), kDenseAll);
    const std::vector<int> levels = harmless.run(120, kFast);
    EXPECT_EQ(levels[0], 1);
    EXPECT_EQ(levels[1], 1);
    if (comm.rank() == 0) {
      EXPECT_EQ(fastest.guard().reason(0), "dense: hidden behind backward");
    }
  });
}

// Whatever the link: what a decision foresees is what the window after it takes.
TEST(Guard, ForeseesSteps) {
  for (const double seconds_per_byte : {1e-6, 2e-7, 5e-8, 1e-8, 1e-10})
    for (const double encode_per_value : {1e-9, 1e-7, 4e-7})
      for (const perf::Goal goal : {perf::Goal::kHarmless, perf::Goal::kFastest})
        on_ranks([&](Communicator& comm) {
          Rank rank(comm, goal);
          rank.run(180, {.seconds_per_byte = seconds_per_byte, .encode_per_value = encode_per_value});
          if (comm.rank() != 0) return;
          int checks = 0;
          double simulated = 0;
          for (const GuardEvent& event : rank.guard().take_events()) {
            if (event.simulated_ms) simulated = *event.simulated_ms;
            if (event.event != "check") continue;
            ++checks;
            for (const double foreseen : {*event.predicted_ms, simulated})
              EXPECT_NEAR(*event.measured_ms / foreseen, 1, 0.03)
                  << seconds_per_byte << " s a byte, " << encode_per_value << " s a value";
          }
          EXPECT_EQ(checks, 1);
        });
}

TEST(Guard, ProbesInBothOrdersAndThenSeldom) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kHarmless);
    rank.run(40, kSlow);
    // Two steps to see that buckets stay; then dense, strong, mild, strong, dense, five each and the mild one twice that.
    EXPECT_EQ(rank.plain_steps(), 10);
    const auto is = [&](std::size_t step, int level) { return rank.log()[step][0] == level; };
    for (std::size_t k = 0; k < 5; ++k) {
      EXPECT_TRUE(is(2 + k, kDense) && is(7 + k, 1) && is(12 + k, 0) && is(17 + k, 0) && is(22 + k, 1) &&
                  is(27 + k, kDense));
    }
    // A dense step is many times slower here: single ones take a hundredth of the time.
    const double before = rank.seconds();
    const int plain = rank.plain_steps();
    rank.run(20000, kSlow);
    const double dense = (rank.plain_steps() - plain) * 0.1, all = rank.seconds() - before;
    EXPECT_GT(rank.plain_steps(), plain);
    EXPECT_LT(dense, 0.02 * all);
  });
}

// The network slows down and recovers; each is met within two windows.
TEST(Guard, MeetsAChangedNetwork) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kFastest);
    EXPECT_EQ(rank.run(120, kFast), kDenseAll);
    rank.run(100, kSlow);
    EXPECT_EQ(rank.log().back()[0], 1);
    agreed(comm, rank.log().back());
    rank.run(100, kDear);
    EXPECT_EQ(rank.log().back(), kDenseAll);
    agreed(comm, rank.log().back());
  });
}

// Steps that turn out slower than dense ones, although the probe had shown them no slower.
void run_deceived(Rank& rank, int steps) {
  World deceiving = kFast;
  for (int k = 0; k < steps; ++k) {
    // Slow only where most of the last steps were compressed alike: never in a probe.
    const auto& log = rank.log();
    const auto strong = log.size() < 12 ? 0
                                        : std::count_if(log.end() - 12, log.end(),
                                                        [](const auto& levels) { return levels[0] == 1; });
    deceiving.surprise = strong > 8 && !rank.next_is_plain() ? 1.08 : 1;
    rank.run(1, deceiving);
  }
}

std::vector<GuardEvent> events_of(const std::vector<GuardEvent>& events, const std::string& event,
                                  const std::string& reason) {
  std::vector<GuardEvent> found;
  for (const GuardEvent& each : events)
    if (each.event == event && each.reason.find(reason) != std::string::npos) found.push_back(each);
  return found;
}

TEST(Guard, FallsBackAndWaitsLongerEachTime) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kHarmless);
    run_deceived(rank, 4000);
    const std::vector<GuardEvent> falls = events_of(record_of(rank, comm), "fall back", "");
    ASSERT_GE(falls.size(), 3u);
    EXPECT_GE(falls[1].step - falls[0].step, 200);
    EXPECT_GE(falls[2].step - falls[1].step, 400);
    agreed(comm, rank.log().back());
  });
}

// The controller changes its mind while all layers are dense because compression was slower.
TEST(Guard, OtherLevelsDoNotEndTheWait) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kHarmless);
    std::vector<GuardEvent> events;
    while (events_of(events, "fall back", "").empty()) {
      ASSERT_LT(rank.log().size(), 1000u);
      run_deceived(rank, 1);
      for (GuardEvent& event : record_of(rank, comm)) events.push_back(std::move(event));
    }
    const auto fell = static_cast<int>(rank.log().size());
    const std::vector<std::vector<int>> turns = {{0, 1, 1}, {1, 0, 1}};
    for (const std::vector<int>& may : turns) {
      rank.run(70, kFast);
      rank.guard().allow(may);
    }
    rank.run(60, kFast);
    for (int s = fell; s < fell + 200; ++s)
      ASSERT_EQ(rank.log()[static_cast<std::size_t>(s)], kDenseAll) << s;
    // What is tried then is what may be by then, and the attempt is the only one.
    EXPECT_EQ(rank.run(220, kFast), (std::vector{1, 0, kDense}));
    rank.run(1000, kFast);
    for (GuardEvent& event : record_of(rank, comm)) events.push_back(std::move(event));
    EXPECT_EQ(events_of(events, "check", "time for another attempt").size(), 1u);

    Rank again(comm, events);
    again.run(fell, kSlow);
    for (const std::vector<int>& may : turns) {
      again.run(70, kSlow);
      again.guard().allow(may);
    }
    again.run(60 + 220 + 1000, kSlow);
    EXPECT_EQ(again.log(), rank.log());
  });
}

// What was slower need not be so with another batch: it is probed again at once, and that is the attempt.
TEST(Guard, AChangedBatchEndsTheWait) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kHarmless);
    while (events_of(record_of(rank, comm), "fall back", "").empty()) {
      ASSERT_LT(rank.log().size(), 1000u);
      run_deceived(rank, 1);
    }
    rank.guard().start_anew();
    EXPECT_EQ(rank.run(120, kFast)[0], 1);
    rank.run(1000, kFast);
    EXPECT_TRUE(events_of(record_of(rank, comm), "check", "time for another attempt").empty());
  });
}

// Small batches, small ones again, and large ones; any level all the time.
class Growing final : public Controller {
 public:
  Decision first() override { return decision(64); }
  Decision decide(const Observation& now) override { return decision(now.window == 0 ? 64 : 128); }

 private:
  static Decision decision(std::int64_t batch) { return {{1, 1, 1}, {"", "", ""}, batch, ""}; }
};

TEST(Guard, IsToldOfAChangedBatch) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kHarmless);
    Steering steering(0, kGuardedLevels, comm.rank() == 0 ? std::make_unique<Growing>() : nullptr,
                      rank.exchange(), &rank.guard(), comm, 0.1);
    const auto probes_of_epoch = [&] {
      rank.run(100, kSlow);
      const auto probes = events_of(record_of(rank, comm), "probe", "what steps cost is not known yet");
      steering.end_epoch(0.1, false);
      return probes.size();
    };
    EXPECT_GT(probes_of_epoch(), 0u);
    EXPECT_EQ(probes_of_epoch(), 0u);
    EXPECT_EQ(steering.batch(), 128);
    EXPECT_GT(probes_of_epoch(), 0u) << "a step is not what it was";
  });
}

TEST(Guard, NothingIsStrongerThanItMayBe) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kFastest);
    rank.run(120, kSlow);
    EXPECT_EQ(rank.log().back()[0], 1);
    rank.guard().allow(std::vector{0, 1, 1});
    const std::size_t from = rank.log().size();
    rank.run(60, kSlow);
    for (std::size_t s = from; s < rank.log().size(); ++s) EXPECT_LE(rank.log()[s][0], 0);
    EXPECT_EQ(rank.log().back(), (std::vector{0, 1, kDense}));
    // What was watched before is known: no new probe.
    rank.guard().allow(std::vector{1, 1, 1});
    EXPECT_EQ(rank.run(1, kSlow)[0], 1);
  });
}

// A codec that costs more than its parts: measured once, it stays dense whatever the controller allows after that.
TEST(Guard, WhatWasMeasuredIsNotForgottenWhenLevelsChange) {
  for (const perf::Goal goal : {perf::Goal::kHarmless, perf::Goal::kFastest})
    on_ranks([&](Communicator& comm) {
      Rank rank(comm, goal);
      World world = kFast;
      world.codec_surprise = 1.2;
      EXPECT_EQ(rank.run(100, world), kDenseAll);
      for (int turn = 0; turn < 4; ++turn) {
        rank.guard().allow(turn % 2 ? std::vector{1, 1, 1} : std::vector{0, 1, 1});
        for (int k = 0; k < 40; ++k) EXPECT_EQ(rank.run(1, world), kDenseAll) << turn << ' ' << k;
      }
    });
}

// Compressed steps were long while they were probed: not for good.
TEST(Guard, AWrongDenseDoesNotLast) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kHarmless);
    World world = kFast;
    world.codec_surprise = 1.2;
    EXPECT_EQ(rank.run(40, world), kDenseAll);
    const std::vector<int> levels = rank.run(1500, kFast);
    agreed(comm, levels);
    EXPECT_EQ(levels[0], 1);
  });
}

// Attempts cost a hundredth of the time, where they are dear.
TEST(Guard, AttemptsAreSeldomWhereTheyAreDear) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kHarmless);
    rank.run(40, kDear);
    const double before = rank.seconds();
    double dense = 0;
    rank.run(1, kDear);
    dense = rank.seconds() - before;
    rank.run(20000, kDear);
    EXPECT_LE(rank.seconds() - before, 1.02 * 20001 * dense);
    EXPECT_EQ(rank.log().back(), kDenseAll);
  });
}

// An evaluation between two steps, of one rank alone.
TEST(Guard, PausesAreNoSteps) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kHarmless), without(comm, perf::Goal::kHarmless);
    World paused = kSlow;
    paused.pause = 5;
    for (int k = 0; k < 1000; ++k) {
      rank.run(1, k % 25 == 24 ? paused : kSlow);
      without.run(1, kSlow);
    }
    EXPECT_EQ(rank.log().back(), without.log().back());
    const auto probes = [&](Rank& of) {
      return events_of(record_of(of, comm), "probe", "what they should").size();
    };
    EXPECT_EQ(probes(rank), 0u);
    EXPECT_LE(std::abs(rank.plain_steps() - without.plain_steps()), 2);
    EXPECT_GE(rank.plain_steps(), 11);
  });
}

// What one layer may get hides behind backward, what the other may does not: a mixture that no probe begins with is tried out.
TEST(Guard, AMixtureThatIsALittleBetterIsTriedOut) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kHarmless);
    // Encoding the second tensor is not hidden; the first one's is.
    const World world{.seconds_per_byte = 1e-11, .encode_per_value = 2.2e-7};
    const std::vector<int> levels = rank.run(600, world);
    agreed(comm, levels);
    EXPECT_EQ(levels, (std::vector{1, kDense, kDense}));
    bool tried = false;
    for (const GuardEvent& event : record_of(rank, comm))
      tried = tried || (event.event == "probe" && event.levels == levels);
    EXPECT_TRUE(tried);
  });
}

TEST(Guard, IsReplayedFromItsRecord) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kFastest);
    rank.run(4, kSlow);  // Into the dense steps of the first probe,
    rank.guard().start_anew();
    rank.run(120, kSlow);
    rank.guard().allow(std::vector{0, 1, 1});
    rank.run(900, kSlow);
    rank.run(300, kDear);
    Rank again(comm, record_of(rank, comm));
    again.run(124, kFast);  // Whatever steps take now.
    again.guard().allow(std::vector{0, 1, 1});
    again.run(1200, kFast);
    EXPECT_EQ(again.log(), rank.log());
  });
}

}  // namespace
}  // namespace accordion
