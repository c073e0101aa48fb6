#include "accordion/perf/step.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <functional>
#include <map>

#include "accordion/perf/drawn_testing.h"

namespace accordion::perf {
namespace {

struct Drawn {
  StepModel model;
  std::vector<int> levels;
};

Drawn drawn() {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  Draw draw(seed ^ 1);
  const int layers = draw.integer(1, 12);
  StepModel model =
      drawn_step(seed, {.layers = layers, .levels = 3, .buckets = draw.integer(1, std::min(layers, 6))});
  std::vector<int> levels = drawn_levels(seed, model);
  return {std::move(model), std::move(levels)};
}

// The same step as its threads live it: they take turns on a queue of events, and know only what has happened so far.
class Threads {
 public:
  Threads(const StepModel& model, const std::vector<int>& levels) : model_(model), levels_(levels) {
    double later = 0;
    for (std::size_t b = 0; b < model.ready.size(); ++b) {
      at(model.ready[b] + later, [this] {
        ++posted_;
        look();
      });
      backward_ = model.backward + later;
      later += model.stretch * processor_seconds(b) + model.delay * sent_bytes(b);
    }
    at(backward_, [] {});  // Part of the step even if nothing else comes as late.
    while (!events_.empty()) {
      now_ = events_.begin()->first;
      const auto happens = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      happens();
    }
  }

  double seconds() const { return now_ + model_.rest; }
  double wire_seconds() const { return wire_seconds_; }

 private:
  void at(double time, std::function<void()> happens) { events_.emplace(time, std::move(happens)); }

  // Works so long from now on, slower while backward runs: what is left by its end goes on from there.
  void work(double seconds, std::function<void()> happens) {
    const double crowded = now_ < backward_ ? model_.crowding : 1;
    if (now_ < backward_ && now_ + crowded * seconds > backward_)
      at(backward_, [this, left = seconds - (backward_ - now_) / crowded, happens] { work(left, happens); });
    else
      at(now_ + crowded * seconds, happens);
  }

  template <class Use>
  void each_layer(std::size_t bucket, Use&& use) const {
    for (std::size_t i = 0; i < model_.layers.size(); ++i)
      if (model_.layers[i].bucket == static_cast<int>(bucket))
        use(model_.layers[i].at(levels_[i]).rounds, levels_[i] == kDense);
  }

  double processor_seconds(std::size_t bucket) const {
    double seconds = 0;
    each_layer(bucket, [&](const auto& rounds, bool) {
      for (const LayerRound& round : rounds) seconds += round.encode + round.decode;
    });
    return seconds;
  }

  double sent_bytes(std::size_t bucket) const {
    double bytes = 0;
    each_layer(bucket, [&](const auto& rounds, bool) {
      for (const LayerRound& round : rounds) bytes += wire_bytes(round.collective, round.bytes, model_.ranks);
    });
    return bytes;
  }

  double encode_seconds(std::size_t bucket, std::size_t round) const {
    double seconds = 0;
    each_layer(bucket, [&](const auto& rounds, bool) {
      if (round < rounds.size()) seconds += rounds[round].encode;
    });
    return seconds;
  }

  void call(std::size_t bucket, std::size_t round, Collective collective, bool dense,
            std::deque<double>& tasks) {
    double bytes = 0, decode = 0;
    bool all_dense = true;
    each_layer(bucket, [&](const auto&, bool is_dense) { all_dense &= is_dense; });
    each_layer(bucket, [&](const auto& rounds, bool is_dense) {
      if (is_dense != dense || round >= rounds.size() || rounds[round].collective != collective) return;
      bytes += rounds[round].bytes;
      decode += rounds[round].decode;
    });
    if (bytes > 0) {
      tasks.push_back(
          (all_dense && model_.link.dense ? *model_.link.dense : model_.link[collective]).seconds(bytes));
      wire_seconds_ += tasks.back();
    }
    tasks.push_back(decode);
  }

  std::deque<double> moves(std::size_t bucket) {
    std::deque<double> tasks;
    call(bucket, 0, Collective::kSum, true, tasks);
    for (std::size_t round = 0; round < kMostRounds; ++round) {
      if (round > 0) tasks.push_back(encode_seconds(bucket, round));
      for (const auto collective : {Collective::kSum, Collective::kGather, Collective::kScatter})
        call(bucket, round, collective, false, tasks);
    }
    return tasks;
  }

  // Whoever is idle looks for work.
  void look() {
    if (!encoding_ && encoded_ < posted_ && encoded_ < moved_ + 2) {
      encoding_ = true;
      work(encode_seconds(encoded_, 0), [this] {
        encoding_ = false;
        ++encoded_;
        look();
      });
    }
    if (!moving_ && moved_ < encoded_) {
      moving_ = true;
      tasks_ = moves(moved_);
      next_task();
    }
  }

  void next_task() {
    if (tasks_.empty()) {
      moving_ = false;
      ++moved_;
      look();
      return;
    }
    const double seconds = tasks_.front();
    tasks_.pop_front();
    work(seconds, [this] { next_task(); });
  }

  const StepModel& model_;
  const std::vector<int>& levels_;
  std::multimap<double, std::function<void()>> events_;
  double now_ = 0, backward_ = 0, wire_seconds_ = 0;
  std::size_t posted_ = 0, encoded_ = 0, moved_ = 0;  // Buckets.
  bool encoding_ = false, moving_ = false;
  std::deque<double> tasks_;
};

bool close(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(a, b);
}

RC_GTEST_PROP(Step, IsWhatThreadsAndEventsComeTo, ()) {
  const Drawn step = drawn();
  const Threads threads(step.model, step.levels);
  RC_ASSERT(close(step_seconds(step.model, step.levels), threads.seconds()));
}

RC_GTEST_PROP(Step, IsTheEndOfItsTimeline, ()) {
  const Drawn step = drawn();
  const Timeline timeline = simulate(step.model, step.levels);
  RC_ASSERT(timeline.seconds == step_seconds(step.model, step.levels));
  RC_ASSERT(
      close(timeline.seconds, std::max(timeline.backward, timeline.buckets.back().end) + step.model.rest));
  double last = 0;
  for (const BucketTimeline& bucket : timeline.buckets) {
    RC_ASSERT(bucket.first_encode.begin >= bucket.ready);
    RC_ASSERT(bucket.decode.size() == bucket.wire.size());
    for (const Interval& wire : bucket.wire) {
      RC_ASSERT(wire.begin >= last * (1 - 1e-12));  // One network.
      RC_ASSERT(wire.begin >= bucket.first_encode.end);
      last = wire.end;
    }
    RC_ASSERT(bucket.decode.empty() || close(bucket.decode.back().end, bucket.end));
  }
}

RC_GTEST_PROP(Step, SplitsIntoPartsThatAddUp, ()) {
  const Drawn step = drawn();
  const Timeline timeline = simulate(step.model, step.levels);
  RC_ASSERT(timeline.encoding >= 0 && timeline.communication >= 0 && timeline.decoding >= 0);
  RC_ASSERT(close(
      timeline.backward + timeline.encoding + timeline.communication + timeline.decoding + step.model.rest,
      timeline.seconds));
}

RC_GTEST_PROP(Step, IsNoShorterThanBackwardNorThanItsWireTimes, ()) {
  const Drawn step = drawn();
  const double seconds = step_seconds(step.model, step.levels);
  RC_ASSERT(seconds >= step.model.backward);
  RC_ASSERT(seconds >= Threads(step.model, step.levels).wire_seconds());
}

RC_GTEST_PROP(Step, IsNoLongerOnABetterLink, ()) {
  Drawn step = drawn();
  Link& link = step.model.link;
  if (!link.dense && *rc::gen::arbitrary<bool>()) link.dense = link[Collective::kScatter];
  const double before = step_seconds(step.model, step.levels);
  const auto chosen = *rc::gen::inRange<std::size_t>(0, kCollectives + (link.dense ? 1 : 0));
  Cost& cost = chosen == kCollectives ? *link.dense : link.costs[chosen];
  const double factor = *rc::gen::inRange(0, 100) / 100.0;
  const bool latency = *rc::gen::arbitrary<bool>();
  for (Line* line : {&cost.small, &cost.large}) (latency ? line->seconds : line->seconds_per_byte) *= factor;
  RC_ASSERT(step_seconds(step.model, step.levels) <= before * (1 + 1e-12));
}

RC_GTEST_PROP(Step, IsNoLongerWithAFasterCodec, ()) {
  Drawn step = drawn();
  const double before = step_seconds(step.model, step.levels);
  const auto i = *rc::gen::inRange<std::size_t>(0, step.levels.size());
  LayerModel& layer = step.model.layers[i];
  LayerCost& cost =
      step.levels[i] == kDense ? layer.dense : layer.levels[static_cast<std::size_t>(step.levels[i])];
  LayerRound& round = cost.rounds[*rc::gen::inRange<std::size_t>(0, cost.rounds.size())];
  (*rc::gen::arbitrary<bool>() ? round.encode : round.decode) *= *rc::gen::inRange(0, 100) / 100.0;
  RC_ASSERT(step_seconds(step.model, step.levels) <= before * (1 + 1e-12));
}

TEST(Step, OfOneBucketIsTheClosedForm) {
  StepModel model{.ranks = 4, .ready = {0.010}, .backward = 0.011, .rest = 0.002, .stretch = 0.5};
  model.link[Collective::kSum].small = {1e-3, 1e-9};
  model.link[Collective::kGather].small = {2e-3, 3e-9};
  const LayerCost dense{{{Collective::kSum, 1e6, 1e-4, 2e-4}}};
  const LayerCost low_rank{{{Collective::kSum, 1e4, 3e-3, 1e-3}, {Collective::kSum, 2e4, 2e-3, 4e-3}}};
  const LayerCost sparse{{{Collective::kGather, 5e4, 6e-3, 5e-3}}};
  for (const LayerCost& cost : {low_rank, sparse}) model.layers.push_back({.dense = dense, .levels = {cost}});
  model.layers.push_back({.dense = dense});

  const std::vector<int> all_dense(3, kDense), compressed{0, 0, kDense};
  EXPECT_DOUBLE_EQ(step_seconds(model, all_dense), 0.010 + 3e-4 + (1e-3 + 3e-3) + 6e-4 + 0.002);
  EXPECT_DOUBLE_EQ(step_seconds(model, compressed),
                   0.010 + (3e-3 + 6e-3 + 1e-4)                        // First encode.
                       + (1e-3 + 1e-3 + 2e-4)                          // Dense.
                       + (1e-3 + 1e-5 + 1e-3) + (2e-3 + 15e-5 + 5e-3)  // First round: sum, gather.
                       + 2e-3 + (1e-3 + 2e-5 + 4e-3) + 0.002);
  const Timeline timeline = simulate(model, compressed);
  EXPECT_DOUBLE_EQ(timeline.backward, 0.011);
  EXPECT_NEAR(timeline.communication, 1e-3 + 1e-3 + 1e-3 + 1e-5 + 2e-3 + 15e-5 + 1e-3 + 2e-5, 1e-12);
  EXPECT_NEAR(timeline.decoding, 2e-4 + 1e-3 + 5e-3 + 4e-3, 1e-12);
  EXPECT_NEAR(timeline.encoding, 0.010 + 9.1e-3 - 0.011 + 2e-3, 1e-12);
  EXPECT_DOUBLE_EQ(timeline.wire_bytes, 1.5 * (1e6 + 3e4) + 3 * 5e4);
  EXPECT_EQ(timeline.buckets[0].wire.size(), 4u);
}

// What the first bucket sends makes all that comes after it later; what the last one sends, nothing.
TEST(Step, MessagesDelayBackward) {
  StepModel model{.ranks = 2, .ready = {1, 2}, .backward = 2, .delay = 1e-6};
  for (int b = 0; b < 2; ++b)
    model.layers.push_back({.bucket = b, .dense = {{{Collective::kSum, 3e5, 0, 0}}}});
  const Timeline timeline = simulate(model, std::vector<int>(2, kDense));
  EXPECT_DOUBLE_EQ(timeline.buckets[0].ready, 1);
  EXPECT_DOUBLE_EQ(timeline.buckets[1].ready, 2.3);
  EXPECT_DOUBLE_EQ(timeline.backward, 2.3);
  EXPECT_DOUBLE_EQ(timeline.seconds, 2.3);
}

// Four seconds of messages from 1 on: one of them beside backward, which takes two, and three after it.
TEST(Step, WhatRunsBesideBackwardIsCrowded) {
  StepModel model{.ranks = 2, .ready = {1}, .backward = 3, .crowding = 2};
  model.link[Collective::kSum].small = {4, 0};
  model.layers.push_back({.bucket = 0, .dense = {{{Collective::kSum, 1, 0, 0}}}});
  const Timeline timeline = simulate(model, std::vector<int>(1, kDense));
  EXPECT_DOUBLE_EQ(timeline.backward, 3);
  EXPECT_DOUBLE_EQ(timeline.communication, 3);
  EXPECT_DOUBLE_EQ(timeline.seconds, 6);
}

TEST(Step, OnlyTheNextBucketIsEncodedAhead) {
  StepModel model{.ranks = 2, .ready = {0, 0, 0}};
  model.link[Collective::kSum].small = {1, 0};
  for (int b = 0; b < 3; ++b)
    model.layers.push_back({.bucket = b, .dense = {}, .levels = {{{{Collective::kSum, 1, 0.25, 0}}}}});
  const Timeline timeline = simulate(model, std::vector<int>(3, 0));
  EXPECT_EQ(timeline.buckets[1].first_encode.begin, 0.25);
  EXPECT_EQ(timeline.buckets[2].first_encode.begin, 1.25);  // The first one's end.
  EXPECT_EQ(timeline.seconds, 3.25);
}

TEST(Step, OfNothingIsBackward) {
  const StepModel model{.backward = 0.5, .rest = 0.25};
  EXPECT_EQ(step_seconds(model, {}), 0.75);
  EXPECT_EQ(simulate(model, {}).seconds, 0.75);
}

TEST(Link, WhatARankSends) {
  EXPECT_EQ(wire_bytes(Collective::kSum, 100, 4), 150);
  EXPECT_EQ(wire_bytes(Collective::kGather, 100, 4), 300);
  EXPECT_EQ(wire_bytes(Collective::kScatter, 100, 4), 100);
  EXPECT_EQ(wire_bytes(Collective::kSum, 100, 1), 0);
}

}  // namespace
}  // namespace accordion::perf
