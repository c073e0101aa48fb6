// The guard on real ranks with an artificial clock, link and codec: what it decides, checks and probes, on all ranks alike.
#include "accordion/engine/guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "accordion/base/json.h"
#include "accordion/comm/loopback.h"

namespace accordion {
namespace {

const std::vector<TensorInfo> kTensors = {{"a", {{200, 100}}}, {"b", {{300, 100}}}, {"c", {{100}}}};
const std::vector<CodecOptions> kLevels = {parse_codec("topk:keep=0.25"), parse_codec("topk:keep=0.01")};

// What everything takes, in seconds. Backward takes 30 ms; buckets come after 10, 20 and 30.
struct World {
  double seconds_per_byte = 1e-8, latency = 1e-4;
  double encode_per_value = 1e-9;  // And decoding the same.
  double surprise = 1;             // A factor on whole steps that no part explains.
};

class Rank {
 public:
  Rank(Communicator& comm, perf::Goal goal)
      : comm_(comm), exchange_(comm, kTensors, {.levels = kLevels}), guard_(goal, kLevels, exchange_, comm) {
    guard_.allow(std::vector{1, 1, 1});
  }
  Rank(Communicator& comm, std::vector<GuardEvent> replay)
      : comm_(comm),
        exchange_(comm, kTensors, {.levels = kLevels}),
        guard_(std::move(replay), kLevels, exchange_, comm) {
    guard_.allow(std::vector{1, 1, 1});
  }

  Guard& guard() { return guard_; }

  // Runs steps; the levels of the last one, kDense where nothing was compressed.
  std::vector<int> run(int steps, const World& world) {
    std::vector<int> levels;
    for (int k = 0; k < steps; ++k) {
      levels = levels_now();
      log_.push_back(levels);
      plain_.push_back(exchange_.plain());
      const StepTrace trace = step(world);
      guard_.end_step(trace);
      last_end_ = trace.end;
    }
    return levels;
  }
  double seconds() const {
    return seconds_between(StepClock::time_point(), last_end_.value_or(StepClock::time_point()));
  }
  const std::vector<std::vector<int>>& log() const { return log_; }
  int plain_steps() const { return static_cast<int>(std::count(plain_.begin(), plain_.end(), true)); }

 private:
  std::vector<int> levels_now() const {
    std::vector<int> levels;
    for (std::size_t i = 0; i < kTensors.size(); ++i)
      levels.push_back(exchange_.compresses(i) ? exchange_.level(i) : kDense);
    return levels;
  }

  // As the engine's threads would have it, one bucket a tensor.
  StepTrace step(const World& world) {
    const auto at = [&](double seconds) {
      return last_end_.value_or(StepClock::time_point()) +
             std::chrono::duration_cast<StepClock::duration>(std::chrono::duration<double>(seconds));
    };
    StepTrace trace{.begin = last_end_};
    double prepared = 0, moved = 0, before = 0;
    for (std::size_t i = 0; i < kTensors.size(); ++i) {
      const double values = static_cast<double>(kTensors[i].shape.count());
      const double ready = 0.01 * static_cast<double>(i + 1);
      const bool compressed = exchange_.compresses(i);
      const double keep = exchange_.level(i) == 0 ? 0.25 : 0.01;
      const double bytes = compressed ? 8 * keep * values : 4 * values;
      const double work = compressed ? world.encode_per_value * values : 0;
      const double begin = std::max({ready, prepared, before});
      before = moved;
      prepared = begin + work;
      const double wire = std::max(prepared, moved);
      // A sum moves 2(N-1)/N of its bytes, a gather N-1 times its own. Ranks other than the first wait for it.
      const double factor = compressed ? comm_.size() - 1.0 : 2.0 * (comm_.size() - 1) / comm_.size();
      const double arrived = wire + world.latency + factor * bytes * world.seconds_per_byte;
      moved = arrived + work;
      BucketTrace& bucket = trace.buckets.emplace_back();
      bucket.slices = {{static_cast<int>(i), 0, kTensors[i].shape.count()}};
      bucket.ready = at(ready);
      bucket.times.prepare_begin = at(begin);
      bucket.times.prepare_end = at(prepared);
      const Pattern pattern = compressed ? Pattern::kGather : Pattern::kSum;
      bucket.times.collectives = {
          {pattern, static_cast<std::size_t>(bytes), at(wire - 1e-4 * comm_.rank()), at(arrived)}};
      if (compressed)
        bucket.times.layers = {
            {static_cast<int>(i), 0, pattern, static_cast<std::size_t>(bytes), work, work}};
      bucket.times.end = at(moved);
    }
    trace.end = at(std::max(moved, 0.03) * world.surprise);
    return trace;
  }

  Communicator& comm_;
  Exchange exchange_;
  Guard guard_;
  std::optional<StepClock::time_point> last_end_;
  std::vector<std::vector<int>> log_;
  std::vector<bool> plain_;
};

// The same on every rank, or the test fails.
void agreed(Communicator& comm, const std::vector<int>& levels) {
  std::vector<std::int32_t> most(levels.begin(), levels.end());
  for (const int level : levels) most.push_back(-level);
  comm.max(std::span(most));
  for (std::size_t i = 0; i < levels.size(); ++i) EXPECT_EQ(most[i], -most[i + levels.size()]);
}

const World kSlow{.seconds_per_byte = 1e-6}, kFast{.seconds_per_byte = 1e-11};
const std::vector<int> kDenseAll = {kDense, kDense, kDense};
const World kDear{.seconds_per_byte = 1e-11, .encode_per_value = 1e-6};

void on_ranks(const std::function<void(Communicator&)>& body) {
  run_loopback(3, body);
}

TEST(Guard, ASlowLinkIsWorthCompressingAndADearCodecIsNot) {
  for (const perf::Goal goal : {perf::Goal::kHarmless, perf::Goal::kFastest})
    on_ranks([&](Communicator& comm) {
      Rank rank(comm, goal);
      const std::vector<int> slow = rank.run(120, kSlow);
      agreed(comm, slow);
      EXPECT_EQ(slow, (std::vector{1, 1, kDense})) << "the vector is not worth compressing";
      if (comm.rank() == 0) {
        EXPECT_NE(rank.guard().reason(0).find(" of "), std::string::npos) << rank.guard().reason(0);
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
          rank.run(100, {.seconds_per_byte = seconds_per_byte, .encode_per_value = encode_per_value});
          if (comm.rank() != 0) return;
          int checks = 0;
          for (const GuardEvent& event : rank.guard().take_events())
            if (event.event == "check") {
              ++checks;
              EXPECT_NEAR(*event.measured_ms / *event.predicted_ms, 1, 0.03)
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
TEST(Guard, FallsBackAndWaitsLongerEachTime) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kHarmless);
    World deceiving = kFast;
    std::vector<std::size_t> falls;  // Steps at which all became dense for good.
    for (int k = 0; k < 4000; ++k) {
      // Slow only where many steps in a row were compressed alike: never in a probe.
      const auto& log = rank.log();
      const bool alike =
          log.size() > 12 && log.back()[0] == 1 && std::equal(log.end() - 10, log.end() - 1, log.end() - 9);
      deceiving.surprise = alike ? 1.08 : 1;
      rank.run(1, deceiving);
    }
    for (std::size_t s = 20; s < rank.log().size(); ++s)
      if (rank.log()[s] == kDenseAll && std::all_of(rank.log().begin() + s - 10, rank.log().begin() + s,
                                                    [](const auto& levels) { return levels[0] == 1; }))
        if (falls.empty() || s - falls.back() > 30) falls.push_back(s);
    ASSERT_GE(falls.size(), 3u);
    EXPECT_GE(falls[1] - falls[0], 200u);
    EXPECT_GE(falls[2] - falls[1], 400u);
    agreed(comm, rank.log().back());
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

TEST(Guard, IsReplayedFromItsRecord) {
  on_ranks([](Communicator& comm) {
    Rank rank(comm, perf::Goal::kFastest);
    rank.run(4, kSlow);  // Into the dense steps of the first probe,
    rank.guard().start_anew();
    rank.run(120, kSlow);
    rank.guard().allow(std::vector{0, 1, 1});
    rank.run(900, kSlow);
    rank.run(300, kDear);
    // Rank 0's record, on every rank.
    std::vector<GuardEvent> events = rank.guard().take_events();
    std::string text = "[";
    for (const GuardEvent& event : events) text += (text.size() > 1 ? "," : "") + to_json(event).dump();
    text += "]";
    std::uint64_t length = text.size();
    comm.broadcast(std::as_writable_bytes(std::span(&length, 1)), 0);
    text.resize(length);
    comm.broadcast(std::as_writable_bytes(std::span(text)), 0);
    events.clear();
    for (const Json& event : Json::parse(text)) from_json(event, events.emplace_back());

    Rank again(comm, events);
    again.run(124, kFast);  // Whatever steps take now.
    again.guard().allow(std::vector{0, 1, 1});
    again.run(1200, kFast);
    EXPECT_EQ(again.log(), rank.log());
  });
}

}  // namespace
}  // namespace accordion
