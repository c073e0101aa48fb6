// Steps that go dense although there is a codec: for once, when all waits untouched, and for good, when what is owed goes along.
#include <gtest/gtest.h>

#include "accordion/base/noise_testing.h"
#include "accordion/comm/loopback.h"
#include "accordion/exchange/exchange.h"

namespace accordion {
namespace {

using Floats = std::vector<float>;

const std::vector<TensorInfo> kTensors = {{"w", {{40, 30}}}, {"v", {{50, 40}}}};
const std::vector<Slice> kSlices = {{0, 0, 1200}, {1, 1200, 2000}};
const char* const kCodecs[] = {"powersgd:approx-rank=2", "topk:keep=0.02", "sign-scaled", "qsgd:bits=4",
                               "mstopk:keep=0.05"};

Floats gradient(int rank, int step) {
  return noise(3200, static_cast<unsigned>(100 * step + rank));
}

Floats run_step(Exchange& exchange, int rank, int step) {
  Floats bucket = gradient(rank, step);
  exchange.mean(bucket, kSlices);
  EXPECT_TRUE(exchange.end_step());
  return bucket;
}

// But for what counts steps.
State state_of(const Exchange& exchange) {
  State state;
  exchange.save_state(StateWriter(state));
  for (const char* counter : {"step", "counts", "window/steps"}) state.erase(counter);
  return state;
}

Floats mean_of(int ranks, int step) {
  Floats mean(3200);
  for (int rank = 0; rank < ranks; ++rank) {
    const Floats mine = gradient(rank, step);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += mine[i] / static_cast<float>(ranks);
  }
  return mean;
}

TEST(Dense, APlainStepSendsTheGradientAndTouchesNothing) {
  for (const char* codec : kCodecs)
    run_loopback(3, [&](Communicator& comm) {
      Exchange exchange(comm, kTensors, {.levels = {parse_codec(codec)}, .seed = 5});
      for (int step = 0; step < 3; ++step) run_step(exchange, comm.rank(), step);
      const State before = state_of(exchange);
      exchange.set_plain(true);
      EXPECT_FALSE(exchange.compresses(0));
      EXPECT_FALSE(exchange.flushes(0));
      exchange.take_epoch_stats();
      const Floats means = run_step(exchange, comm.rank(), 3);
      EXPECT_EQ(exchange.take_epoch_stats().traffic.payload_bytes, 4 * means.size()) << codec;
      const Floats expected = mean_of(3, 3);
      for (std::size_t i = 0; i < means.size(); ++i) ASSERT_NEAR(means[i], expected[i], 1e-5) << codec;
      exchange.set_plain(false);
      EXPECT_EQ(state_of(exchange), before) << codec;
      EXPECT_TRUE(exchange.compresses(0));
    });
}

// What was owed goes out with the first dense step, and nothing is owed then: all that was sent is all there was.
TEST(Dense, ForGoodSendsWhatWasOwed) {
  for (const char* codec : {"powersgd:approx-rank=2", "topk:keep=0.02", "sign-scaled"})
    run_loopback(3, [&](Communicator& comm) {
      Exchange exchange(comm, kTensors, {.levels = {parse_codec(codec)}, .seed = 5});
      std::vector<double> sent(3200), wanted(3200);
      for (int step = 0; step < 6; ++step) {
        if (step == 4) exchange.set_levels(std::vector{kDense, kDense});
        const Floats means = run_step(exchange, comm.rank(), step), expected = mean_of(3, step);
        for (std::size_t i = 0; i < means.size(); ++i) {
          sent[i] += means[i];
          wanted[i] += expected[i];
        }
      }
      EXPECT_EQ(exchange.level(0), kDense);
      for (std::size_t i = 0; i < sent.size(); ++i)
        ASSERT_NEAR(sent[i], wanted[i], 1e-4) << codec << " at " << i;
    });
}

TEST(Dense, TheCodecsKnowledgeWaitsForItsReturn) {
  run_loopback(2, [&](Communicator& comm) {
    Exchange exchange(comm, kTensors, {.levels = {parse_codec("powersgd:approx-rank=2")}, .seed = 5});
    for (int step = 0; step < 3; ++step) run_step(exchange, comm.rank(), step);
    const StateValue q = state_of(exchange).at("w/q");
    exchange.set_levels(std::vector{kDense, 0});
    run_step(exchange, comm.rank(), 3);
    State state = state_of(exchange);
    EXPECT_EQ(state.at("w/waiting/q"), q);

    // It can be saved meanwhile.
    State saved;
    exchange.save_state(StateWriter(saved));
    Exchange other(comm, kTensors, {.levels = {parse_codec("powersgd:approx-rank=2")}, .seed = 5});
    other.set_levels(std::vector{kDense, 0});
    other.load_state(StateReader(saved));
    for (Exchange* each : {&exchange, &other}) each->set_levels(std::vector{0, 0});
    EXPECT_EQ(state_of(exchange).at("w/q"), q);
    EXPECT_EQ(state_of(other), state_of(exchange));
    EXPECT_EQ(run_step(other, comm.rank(), 4), run_step(exchange, comm.rank(), 4));
  });
}

// They may come from a record that is replayed.
TEST(Dense, LevelsThatThereAreNotAreRefused) {
  run_loopback(1, [&](Communicator& comm) {
    Exchange exchange(comm, kTensors, {.levels = {parse_codec("topk")}});
    const auto refusal = [&](const std::vector<int>& levels) {
      try {
        exchange.set_levels(levels);
        return std::string();
      } catch (const Error& error) {
        return std::string(error.what());
      }
    };
    EXPECT_EQ(refusal({0, kDense}), "");
    EXPECT_EQ(refusal({0, 1}), "level 1 for " + kTensors[1].name + ", expected -1 (dense) to 0");
    EXPECT_EQ(refusal({-2, 0}), "level -2 for " + kTensors[0].name + ", expected -1 (dense) to 0");
    EXPECT_EQ(refusal({0}), "levels for 1 tensors, expected for 2");
    EXPECT_EQ(exchange.level(1), kDense) << "a refusal changes nothing";
  });
}

TEST(Dense, TimesAreOfWhatWasSent) {
  run_loopback(2, [&](Communicator& comm) {
    Exchange exchange(comm, kTensors,
                      {.levels = {parse_codec("powersgd:approx-rank=2"), parse_codec("topk:keep=0.1")}});
    exchange.set_levels(std::vector{0, 1});
    Floats bucket = gradient(comm.rank(), 0);
    exchange.prepare({std::span<float>(bucket), kSlices});
    const BucketTimes times = exchange.run();
    exchange.end_step();
    ASSERT_EQ(times.layers.size(), 3u);  // P and Q of one, the gathered entries of the other.
    EXPECT_EQ(times.collectives.size(), 3u);
    std::size_t of_layers = 0, of_collectives = 0;
    for (const LayerTime& layer : times.layers) {
      of_layers += layer.bytes;
      EXPECT_GT(layer.encode, 0);
      EXPECT_GT(layer.decode, 0);
    }
    for (const CollectiveTime& collective : times.collectives) {
      of_collectives += collective.bytes;
      EXPECT_LE(times.prepare_end, collective.begin);
      EXPECT_LE(collective.begin, collective.end);
      EXPECT_LE(collective.end, times.end);
    }
    EXPECT_EQ(of_layers, of_collectives);
    EXPECT_GT(times.prepare(), 0);
  });
}

}  // namespace
}  // namespace accordion
