#include "accordion/exchange/watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "accordion/base/noise_testing.h"
#include "accordion/comm/loopback.h"
#include "accordion/compress/try_levels.h"
#include "accordion/exchange/exchange.h"

namespace accordion {
namespace {

const std::vector<Slice> kTwo = {{0, 0, 2}};

TEST(Watch, NormIsOfTheSumOfRawLocalGradients) {
  run_loopback(2, [](Communicator& comm) {
    Exchange exchange(comm, {{"w", {{2}}}}, {.track = {.norms = comm.rank() == 0}});
    for (int step = 0; step < 3; ++step) {
      std::vector<float> gradient = {comm.rank() == 0 ? 1.0f : 100.0f, 0.0f};
      exchange.set_weight(comm.rank() == 0 ? 0.5 : 1.5);  // The weight is not part of the raw gradient.
      exchange.mean(gradient, kTwo);
      exchange.end_step();
    }
    const WindowStats stats = exchange.take_window();
    EXPECT_EQ(stats.steps, 3);
    if (comm.rank() == 0) {
      EXPECT_EQ(stats.norms, std::vector<double>{3.0});
      EXPECT_EQ(exchange.take_window().norms, std::vector<double>{0.0}) << "a window starts from nothing";
    } else {
      EXPECT_TRUE(stats.norms.empty());
    }
  });
}

// What a rank without samples hands in is no gradient of anything.
TEST(Watch, ARankWithoutSamplesHasSeenNothing) {
  run_loopback(2, [](Communicator& comm) {
    Exchange exchange(comm, {{"w", {{2}}}}, {.track = {.norms = comm.rank() == 0}});
    for (const bool without : {false, true}) {
      std::vector<float> gradient = {1, 0};
      exchange.set_weight(without == (comm.rank() == 0) ? 0 : 2);
      exchange.mean(gradient, kTwo);
      exchange.end_step();
    }
    if (comm.rank() == 0) {
      EXPECT_EQ(exchange.take_window().norms, std::vector<double>{1});
    }
  });
}

// Where training goes on after a step that is not finite, so do its norms.
template <class T>
void expect_norms_without_bad_steps() {
  for (const bool aggregated : {false, true})
    run_loopback(2, [&](Communicator& comm) {
      Exchange exchange(
          comm, {{"w", {{2}}}},
          {.track = {.norms = true, .squares = true, .aggregated = aggregated}, .watch_dense = true});
      for (const T value :
           {T{1}, std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(), T{2}}) {
        std::vector<T> gradient = {value, 0};
        exchange.mean(gradient, kTwo);
        EXPECT_EQ(exchange.end_step(), std::isfinite(value));
      }
      const WindowStats stats = exchange.take_window();
      EXPECT_EQ(stats.norms, std::vector<double>{3});
      EXPECT_EQ(stats.squares, std::vector<double>{5});
    });
}

TEST(Watch, AStepThatIsNotFiniteIsNoneOfTheWindow) {
  expect_norms_without_bad_steps<float>();
  expect_norms_without_bad_steps<double>();
}

TEST(Watch, SeesGradientsOfDoublePrecision) {
  for (const bool aggregated : {false, true})
    run_loopback(2, [&](Communicator& comm) {
      Exchange exchange(comm, {{"w", {{2}}}},
                        {.track = {.norms = true, .squares = true, .aggregated = aggregated}});
      for (const double value : {3.0, -3.0, 4.0, 2.0}) {
        std::vector<double> gradient = {0, comm.rank() == 0 ? value : 0};
        exchange.mean(gradient, kTwo);
        exchange.end_step();
      }
      const WindowStats stats = exchange.take_window();
      if (comm.rank() == 1 && !aggregated) {
        EXPECT_EQ(stats.norms, std::vector<double>{0});
        return;
      }
      EXPECT_EQ(stats.norms, std::vector<double>{aggregated ? 3.0 : 6.0});
      EXPECT_EQ(stats.squares, std::vector<double>{aggregated ? 9.5 : 38.0});
    });
}

TEST(Watch, AggregatedNormIsOfTheMeanOnEveryRank) {
  run_loopback(2, [](Communicator& comm) {
    Exchange exchange(comm, {{"w", {{2}}}}, {.track = {.norms = true, .aggregated = true}});
    for (int step = 0; step < 3; ++step) {
      std::vector<float> gradient = {comm.rank() == 0 ? 1.0f : 3.0f, 0.0f};
      exchange.mean(gradient, kTwo);
      exchange.end_step();
    }
    EXPECT_EQ(exchange.take_window().norms, std::vector<double>{6.0});
  });
}

// Under compression the two sources differ: one sees what was sent.
TEST(Watch, AggregatedNormSeesTheCompressedGradient) {
  run_loopback(1, [](Communicator& comm) {
    for (const bool aggregated : {false, true}) {
      Exchange exchange(
          comm, {{"w", {{32, 64}}}},
          {.levels = {TopKOptions{.keep = 0.01}}, .track = {.norms = true, .aggregated = aggregated}});
      std::vector<float> gradient = noise(2048, 3), sent = gradient;
      double raw = 0, seen = 0;
      exchange.mean(sent, std::vector<Slice>{{0, 0, 2048}});
      exchange.end_step();
      for (std::size_t i = 0; i < sent.size(); ++i) {
        raw += gradient[i] * gradient[i];
        seen += sent[i] * sent[i];
      }
      EXPECT_LT(seen, 0.5 * raw);
      EXPECT_NEAR(exchange.take_window().norms[0], std::sqrt(aggregated ? seen : raw), 1e-4);
    }
  });
}

TEST(Watch, SquaresAreOfEachStep) {
  run_loopback(1, [](Communicator& comm) {
    Exchange exchange(comm, {{"w", {{2}}}}, {.track = {.norms = true, .squares = true}});
    for (const float value : {3.0f, -3.0f, 4.0f}) {
      std::vector<float> gradient = {value, 0};
      exchange.mean(gradient, kTwo);
      exchange.end_step();
    }
    const WindowStats stats = exchange.take_window();
    EXPECT_EQ(stats.norms, std::vector<double>{4});
    EXPECT_EQ(stats.squares, std::vector<double>{34});
    EXPECT_EQ(exchange.take_window().squares, std::vector<double>{0});
  });
}

TEST(Watch, TrialsAreOfTheSummedGradient) {
  run_loopback(2, [](Communicator& comm) {
    const std::vector<CodecOptions> levels = {NoneOptions{}, TopKOptions{.keep = 0.5},
                                              TopKOptions{.keep = 0.01}};
    Exchange exchange(comm, {{"w", {{32, 64}}}, {"b", {{32}}}},
                      {.levels = levels, .track = {.norms = true, .trials = true}});
    const auto one = noise(2080, 3), two = noise(2080, 4);
    std::vector<float> sum(2048);
    for (const auto& each : {one, two}) {
      std::vector<float> gradient = each;
      exchange.mean(gradient, std::vector<Slice>{{0, 0, 2048}, {1, 2048, 32}});
      exchange.end_step();
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += each[i];
    }
    const WindowStats stats = exchange.take_window();
    const auto expected = try_levels(sum, {{32, 64}}, levels, 2, {});
    ASSERT_EQ(stats.trials.size(), 2u);
    ASSERT_EQ(stats.trials[0].size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(stats.trials[0][i].error, expected[i].error);
      EXPECT_EQ(stats.trials[0][i].bytes, expected[i].bytes);
    }
    EXPECT_TRUE(stats.trials[1].empty()) << "a bias goes dense";
  });
}

// A run that stops within a window and goes on sees the same window.
TEST(Watch, AWindowGoesOnAfterAStop) {
  run_loopback(1, [](Communicator& comm) {
    const ExchangeOptions options{.levels = {TopKOptions{.keep = 0.1}},
                                  .track = {.norms = true, .squares = true}};
    const std::vector<TensorInfo> tensors = {{"w", {{32, 64}}}};
    const auto step = [](Exchange& exchange, std::uint64_t seed) {
      auto gradient = noise(2048, seed);
      exchange.mean(gradient, std::vector<Slice>{{0, 0, 2048}});
      exchange.end_step();
    };
    Exchange whole(comm, tensors, options), first(comm, tensors, options), second(comm, tensors, options);
    for (std::uint64_t i = 0; i < 5; ++i) step(whole, i);
    for (std::uint64_t i = 0; i < 3; ++i) step(first, i);
    State state;
    first.save_state(StateWriter(state));
    second.load_state(StateReader(state));
    for (std::uint64_t i = 3; i < 5; ++i) step(second, i);
    const WindowStats a = whole.take_window(), b = second.take_window();
    EXPECT_EQ(a.steps, b.steps);
    EXPECT_EQ(a.norms, b.norms);
    EXPECT_EQ(a.squares, b.squares);
  });
}

// A record may be kept from a stop on, or until then: a window that was not watched is empty, one that is not wanted is left.
TEST(Watch, WhoWatchesMayChangeOverAStop) {
  run_loopback(1, [](Communicator& comm) {
    const std::vector<TensorInfo> tensors = {{"w", {{32, 64}}}};
    Exchange watching(comm, tensors, {.track = {.norms = true}}), blind(comm, tensors, {});
    for (Exchange* exchange : {&watching, &blind}) {
      auto gradient = noise(2048, 1);
      exchange->mean(gradient, std::vector<Slice>{{0, 0, 2048}});
      exchange->end_step();
    }
    State seen, unseen;
    watching.save_state(StateWriter(seen));
    blind.save_state(StateWriter(unseen));
    blind.load_state(StateReader(seen));
    watching.load_state(StateReader(unseen));
    const WindowStats window = watching.take_window();
    EXPECT_EQ(window.steps, 0);
    EXPECT_EQ(window.norms, std::vector<double>{0});
  });
}

TEST(Watch, AWindowThatHasNotBegunIsNotKept) {
  run_loopback(1, [](Communicator& comm) {
    const ExchangeOptions options{.track = {.norms = true}};
    const std::vector<TensorInfo> tensors = {{"w", {{32, 64}}}};
    Exchange fresh(comm, tensors, options), begun(comm, tensors, options);
    auto gradient = noise(2048, 1);
    begun.mean(gradient, std::vector<Slice>{{0, 0, 2048}});
    begun.end_step();
    State state;
    fresh.save_state(StateWriter(state));
    EXPECT_FALSE(state.contains("window/w/sum"));
    state["window/w/sum"] = std::vector<float>(2048);  // As older states have it.
    begun.load_state(StateReader(state));
    EXPECT_EQ(begun.take_window().norms, std::vector<double>{0});
  });
}

}  // namespace
}  // namespace accordion
