// For tests of the guard: a rank whose clock, link and codec are artificial.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "accordion/base/json.h"
#include "accordion/comm/loopback.h"
#include "accordion/engine/guard.h"

namespace accordion {

inline const std::vector<TensorInfo> kGuardedTensors = {
    {"a", {{200, 100}}}, {"b", {{300, 100}}}, {"c", {{100}}}};
inline const std::vector<CodecOptions> kGuardedLevels = {parse_codec("topk:keep=0.25"),
                                                         parse_codec("topk:keep=0.01")};

// What everything takes, in seconds. Backward takes 30 ms; buckets come after 10, 20 and 30.
struct World {
  double seconds_per_byte = 1e-8, latency = 1e-4;
  double encode_per_value = 1e-9;  // And decoding the same.
  double surprise = 1;             // A factor on whole steps that no part explains,
  double dense_surprise = 1;       // one on plain ones,
  double codec_surprise = 1;       // one on those that compress anything,
  double noise = 0;                // and one that differs from step to step, by as much as this either way.
  double burst = 1;                // On five to forty steps in a row, and then on as many not.
  double pause = 0;                // Before a step, on the last rank.
};

class Rank {
 public:
  Rank(Communicator& comm, perf::Goal goal)
      : comm_(comm),
        exchange_(comm, kGuardedTensors, {.levels = kGuardedLevels}),
        guard_(goal, kGuardedLevels, exchange_, comm),
        random_(comm.rank() + 1u) {
    guard_.allow(std::vector{1, 1, 1});
  }
  Rank(Communicator& comm, std::vector<GuardEvent> replay)
      : comm_(comm),
        exchange_(comm, kGuardedTensors, {.levels = kGuardedLevels}),
        guard_(std::move(replay), kGuardedLevels, exchange_, comm) {
    guard_.allow(std::vector{1, 1, 1});
  }

  Guard& guard() { return guard_; }
  Exchange& exchange() { return exchange_; }

  // Runs steps; the levels of the last one, kDense where nothing was compressed.
  std::vector<int> run(int steps, const World& world) {
    std::vector<int> levels;
    for (int k = 0; k < steps; ++k) {
      levels = levels_now();
      log_.push_back(levels);
      plain_.push_back(exchange_.plain());
      const StepTrace trace = step(world);
      const double before = seconds();
      guard_.end_step(trace);
      last_end_ = trace.end;
      step_seconds_.push_back(seconds() - before);
    }
    return levels;
  }
  double seconds() const {
    return seconds_between(StepClock::time_point(), last_end_.value_or(StepClock::time_point()));
  }
  const std::vector<std::vector<int>>& log() const { return log_; }
  bool next_is_plain() const { return exchange_.plain(); }
  const std::vector<bool>& plain() const { return plain_; }
  const std::vector<double>& step_seconds() const { return step_seconds_; }
  int plain_steps() const { return static_cast<int>(std::count(plain_.begin(), plain_.end(), true)); }

 private:
  std::vector<int> levels_now() const {
    std::vector<int> levels;
    for (std::size_t i = 0; i < kGuardedTensors.size(); ++i)
      levels.push_back(exchange_.compresses(i) ? exchange_.level(i) : kDense);
    return levels;
  }

  double burst(const World& world) {
    if (world.burst == 1) return 1;
    if (burst_left_-- <= 0) {
      in_burst_ = !in_burst_;
      burst_left_ = std::uniform_int_distribution(5, 40)(bursts_);
    }
    return in_burst_ ? world.burst : 1;
  }

  // As the engine's threads would have it, one bucket a tensor.
  StepTrace step(const World& world) {
    const auto at = [&](double seconds) {
      return last_end_.value_or(StepClock::time_point()) +
             std::chrono::duration_cast<StepClock::duration>(std::chrono::duration<double>(seconds));
    };
    StepTrace trace{.begin = last_end_};
    double prepared = 0, moved = 0, before = 0;
    for (std::size_t i = 0; i < kGuardedTensors.size(); ++i) {
      const double values = static_cast<double>(kGuardedTensors[i].shape.count());
      const double pause = comm_.rank() == comm_.size() - 1 ? world.pause : 0;
      const double ready = 0.01 * static_cast<double>(i + 1) + pause;
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
      bucket.slices = {{static_cast<int>(i), 0, kGuardedTensors[i].shape.count()}};
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
    const double uneven = std::uniform_real_distribution(-world.noise, world.noise)(random_);
    trace.end = at(std::max(moved, 0.03) * world.surprise * (exchange_.plain() ? world.dense_surprise : 1) *
                   (levels_now() == std::vector(kGuardedTensors.size(), kDense) ? 1 : world.codec_surprise) *
                   (1 + uneven) * burst(world));
    return trace;
  }

  Communicator& comm_;
  Exchange exchange_;
  Guard guard_;
  std::optional<StepClock::time_point> last_end_;
  std::vector<std::vector<int>> log_;
  std::vector<bool> plain_;
  std::vector<double> step_seconds_;
  std::mt19937 random_, bursts_;  // Of bursts all ranks have the same.
  int burst_left_ = 0;
  bool in_burst_ = false;
};

// The same on every rank, or the test fails.
inline void agreed(Communicator& comm, const std::vector<int>& levels) {
  std::vector<std::int32_t> most(levels.begin(), levels.end());
  for (const int level : levels) most.push_back(-level);
  comm.max(std::span(most));
  for (std::size_t i = 0; i < levels.size(); ++i) EXPECT_EQ(most[i], -most[i + levels.size()]);
}

inline const World kSlow{.seconds_per_byte = 1e-6}, kFast{.seconds_per_byte = 1e-11};
inline const std::vector<int> kDenseAll = {kDense, kDense, kDense};
inline const World kDear{.seconds_per_byte = 1e-11, .encode_per_value = 1e-6};

inline void on_ranks(const std::function<void(Communicator&)>& body) {
  run_loopback(3, body);
}

// Rank 0's, on every rank.
inline std::vector<GuardEvent> record_of(Rank& rank, Communicator& comm) {
  std::string text = "[";
  for (const GuardEvent& event : rank.guard().take_events())
    text += (text.size() > 1 ? "," : "") + to_json(event).dump();
  text += "]";
  std::uint64_t length = text.size();
  comm.broadcast(std::as_writable_bytes(std::span(&length, 1)), 0);
  text.resize(length);
  comm.broadcast(std::as_writable_bytes(std::span(text)), 0);
  std::vector<GuardEvent> events;
  for (const Json& event : Json::parse(text)) from_json(event, events.emplace_back());
  return events;
}

}  // namespace accordion
