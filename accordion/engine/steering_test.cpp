#include "accordion/engine/steering.h"

#include <gtest/gtest.h>

#include <cmath>

#include "accordion/base/error.h"
#include "accordion/comm/loopback.h"

namespace accordion {
namespace {

const std::vector<TensorInfo> kTensors = {{"a", {{40, 30}}}, {"b", {{50, 40}}}, {"c", {{9}}}};
const std::vector<CodecOptions> kLevels = {NoneOptions{}, TopKOptions{.keep = 0.1},
                                           TopKOptions{.keep = 0.01}};

// What a controller was shown: spans do not last.
struct Seen {
  int window;
  double lr, next_lr;
  std::vector<double> norms, squares;
  std::int64_t steps;
  std::vector<std::vector<Trial>> trials;
};

// Decides what is written down, and remembers what it saw.
class Scripted final : public Controller {
 public:
  Scripted(std::vector<Decision> script, std::vector<Seen>& seen) : script_(std::move(script)), seen_(seen) {}

  Decision first() override { return script_.at(0); }
  Decision decide(const Observation& now) override {
    seen_.push_back({now.window,
                     now.lr,
                     now.next_lr,
                     {now.norms.begin(), now.norms.end()},
                     {now.squares.begin(), now.squares.end()},
                     now.steps,
                     {now.trials.begin(), now.trials.end()}});
    return script_.at(seen_.size());
  }

 private:
  std::vector<Decision> script_;
  std::vector<Seen>& seen_;
};

const std::vector<Decision> kScript = {{{0, 1, 1}, {"a0", "b0", "c0"}, 64, "small"},
                                       {{2, 1, 1}, {"a1", "b1", "c1"}, 128, "grown"},
                                       {{1, 2, 1}, {"a2", "b2", "c2"}, 128, "kept"},
                                       {{0, 0, 0}, {"a3", "b3", "c3"}}};

// One rank with all that a window needs; rank 0 alone decides.
class Rank {
 public:
  Rank(Group& group, int window_steps, double rate)
      : exchange_(group.gradients(), kTensors, options_of(group.rank())),
        steering_(window_steps, kLevels,
                  group.rank() == 0 ? std::make_unique<Scripted>(kScript, seen_) : nullptr, exchange_,
                  nullptr, group.control(), rate) {}

  // The same gradient in every step: norms of sums are known.
  void step() {
    for (std::size_t i = 0; i < kTensors.size(); ++i) {
      std::vector<float> gradient(kTensors[i].shape.count(), 1);
      exchange_.mean(gradient, std::vector<Slice>{{static_cast<int>(i), 0, gradient.size()}});
    }
    exchange_.end_step();
  }

  std::vector<int> levels() const { return {exchange_.level(0), exchange_.level(1), exchange_.level(2)}; }
  Steering& steering() { return steering_; }
  const std::vector<Seen>& seen() const { return seen_; }

 private:
  static ExchangeOptions options_of(int rank) {
    ExchangeOptions options{.levels = kLevels};
    if (rank == 0) options.track = {.norms = true, .squares = true, .trials = true};
    return options;
  }

  std::vector<Seen> seen_;
  Exchange exchange_;
  Steering steering_;
};

TEST(Steering, EveryRankHasWhatTheFirstDecides) {
  run_loopback_groups(3, [](Group& group) {
    Rank rank(group, 0, 0.1);
    Steering& steering = rank.steering();
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
      EXPECT_EQ(rank.levels(), kScript[epoch].levels);
      EXPECT_EQ(steering.batch(), kScript[epoch].batch);
      EXPECT_EQ(steering.batch_reason(), group.rank() == 0 ? kScript[epoch].batch_reason : "");
      EXPECT_EQ(steering.take_control_bytes(), (kTensors.size() + 1) * 8) << "one message a decision";
      EXPECT_EQ(steering.take_control_bytes(), 0u);
      rank.step();
      steering.end_epoch(0.1, false);
    }
  });
}

TEST(Steering, ShowsTheControllerWhatTheWindowLeftBehind) {
  run_loopback_groups(2, [](Group& group) {
    Rank rank(group, 0, 0.4);
    const double rates[] = {0.2, 0.1, 0.05};
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (int step = 0; step <= epoch; ++step) rank.step();
      rank.steering().end_epoch(rates[epoch], false);
    }
    EXPECT_EQ(rank.seen().size(), group.rank() == 0 ? 3u : 0u);
    if (group.rank() > 0) return;
    double rate = 0.4;
    for (int epoch = 0; epoch < 3; ++epoch) {
      const Seen& seen = rank.seen().at(static_cast<std::size_t>(epoch));
      EXPECT_EQ(seen.window, epoch);
      EXPECT_EQ(seen.lr, rate) << "where the window begins";
      EXPECT_EQ(seen.next_lr, rates[epoch]);
      rate = rates[epoch];
      EXPECT_EQ(seen.steps, epoch + 1);
      EXPECT_NEAR(seen.norms.at(1), (epoch + 1) * std::sqrt(2000), 1e-3) << "of this window alone";
      EXPECT_NEAR(seen.squares.at(1), (epoch + 1) * 2000.0, 1e-2);
      EXPECT_EQ(seen.trials.at(1).size(), kLevels.size());
    }
  });
}

TEST(Steering, ARateThatIsNotKnownIsNoDecay) {
  run_loopback_groups(1, [](Group& group) {
    Rank rank(group, 0, std::nan(""));
    rank.step();
    rank.steering().end_epoch(0.2, false);
    rank.step();
    rank.steering().end_epoch(0.1, false);
    EXPECT_EQ(rank.seen().at(0).lr, 0.2);
    EXPECT_EQ(rank.seen().at(1).lr, 0.2);
    EXPECT_EQ(rank.seen().at(1).next_lr, 0.1);
  });
}

// The record of a window has what was in force in it, and why; not what was decided at its end.
TEST(Steering, RecordsWhatWasInForce) {
  run_loopback_groups(2, [](Group& group) {
    Rank rank(group, 0, 0.1);
    if (group.rank() == 0) {
      EXPECT_TRUE(std::isnan(rank.steering().layers().at(0).norm)) << "no window has ended";
    }
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
      rank.step();
      rank.steering().end_epoch(0.1, false);
      const std::vector<LayerRecord>& layers = rank.steering().layers();
      if (group.rank() > 0) {
        EXPECT_TRUE(layers.empty());
        continue;
      }
      ASSERT_EQ(layers.size(), 3u);
      const Decision& decision = kScript[epoch];
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(layers[i].name, kTensors[i].name);
        EXPECT_EQ(layers[i].elements, static_cast<std::int64_t>(kTensors[i].shape.count()));
        EXPECT_EQ(layers[i].level, decision.levels[i]);
        EXPECT_EQ(layers[i].codec, codec_text(kLevels[static_cast<std::size_t>(decision.levels[i])]));
        EXPECT_EQ(layers[i].reason, decision.reasons[i]);
        EXPECT_EQ(layers[i].level_errors.size(), kLevels.size());
        ASSERT_EQ(layers[i].level_bytes.size(), kLevels.size());
        EXPECT_EQ(layers[i].level_errors[0], 0) << "which sends everything";
        EXPECT_EQ(layers[i].level_bytes[0], 4.0 * static_cast<double>(layers[i].elements));
        EXPECT_NEAR(layers[i].squares.value(), static_cast<double>(layers[i].elements), 1e-2);
      }
      // A level that compresses nothing of it.
      EXPECT_EQ(layers[2].codec, "none");
      EXPECT_EQ(layers[2].reason, "not worth compressing");
      EXPECT_TRUE(rank.steering().take_windows().empty()) << "windows are epochs";
    }
  });
}

TEST(Steering, WindowsOfStepsGoOnOverTheEndOfAnEpoch) {
  run_loopback_groups(2, [](Group& group) {
    Rank rank(group, 3, 0.1);
    std::vector<std::vector<int>> levels;
    for (int step = 0; step < 8; ++step) {
      levels.push_back(rank.levels());
      rank.step();
      rank.steering().end_step(0.1 / (step + 2), step == 7);
      if (step == 3) rank.steering().end_epoch(0.1, false);
    }
    for (std::size_t step = 0; step < 8; ++step) EXPECT_EQ(levels[step], kScript[step / 3].levels) << step;
    const std::vector<WindowRecord> windows = rank.steering().take_windows();
    ASSERT_EQ(windows.size(), group.rank() == 0 ? 3u : 0u);
    if (group.rank() > 0) return;
    for (std::size_t w = 0; w < 3; ++w) {
      EXPECT_EQ(windows[w].window, static_cast<int>(w));
      EXPECT_EQ(windows[w].steps, w < 2 ? 3 : 2) << "the last as long as there are steps";
      EXPECT_EQ(windows[w].layers.at(0).level, kScript[w].levels[0]);
      EXPECT_EQ(windows[w].lr, w == 0 ? 0.1 : 0.1 / static_cast<double>(3 * w + 1));
    }
    EXPECT_TRUE(rank.steering().take_windows().empty());
    EXPECT_EQ(rank.seen().size(), 2u) << "nothing is decided after the last step";
  });
}

// What was decided, why, and what the next decision will see.
TEST(Steering, GoesOnFromItsState) {
  run_loopback_groups(2, [](Group& group) {
    Rank first(group, 0, 0.4), second(group, 0, 0.4);
    first.steering().take_control_bytes();
    first.step();
    first.steering().end_epoch(0.2, false);
    State state;
    first.steering().save_state(StateWriter(state));
    second.steering().load_state(StateReader(state));
    second.steering().put_loaded_levels();
    EXPECT_EQ(second.levels(), kScript[1].levels);
    for (int epoch = 1; epoch < 3; ++epoch) {
      EXPECT_EQ(second.levels(), first.levels());
      EXPECT_EQ(second.steering().batch(), first.steering().batch());
      EXPECT_EQ(second.steering().batch_reason(), first.steering().batch_reason());
      EXPECT_EQ(second.steering().take_control_bytes(), first.steering().take_control_bytes());
      for (Rank* rank : {&first, &second}) {
        rank->step();
        rank->steering().end_epoch(0.1, false);
      }
      ASSERT_EQ(second.steering().layers().size(), first.steering().layers().size());
      for (std::size_t i = 0; i < first.steering().layers().size(); ++i)
        EXPECT_EQ(second.steering().layers()[i].reason, first.steering().layers()[i].reason);
    }
    ASSERT_EQ(second.seen().size(), first.seen().size());
    for (std::size_t w = 0; w < first.seen().size(); ++w) {
      EXPECT_EQ(second.seen()[w].window, first.seen()[w].window);
      EXPECT_EQ(second.seen()[w].lr, first.seen()[w].lr);
      EXPECT_EQ(second.seen()[w].next_lr, first.seen()[w].next_lr);
      EXPECT_EQ(second.seen()[w].norms, first.seen()[w].norms);
      EXPECT_EQ(second.seen()[w].squares, first.seen()[w].squares);
      EXPECT_EQ(second.seen()[w].steps, first.seen()[w].steps);
      for (std::size_t i = 0; i < kTensors.size(); ++i)
        for (std::size_t level = 0; level < first.seen()[w].trials[i].size(); ++level) {
          EXPECT_EQ(second.seen()[w].trials.at(i).at(level).error, first.seen()[w].trials[i][level].error);
          EXPECT_EQ(second.seen()[w].trials[i][level].bytes, first.seen()[w].trials[i][level].bytes);
        }
    }
  });
}

TEST(Steering, RefusesAStateThatCannotBe) {
  run_loopback_groups(1, [](Group& group) {
    Rank rank(group, 0, 0.1);
    State state;
    rank.steering().save_state(StateWriter(state));
    const auto refusal = [&](const std::vector<std::int64_t>& levels) -> std::string {
      State wrong = state;
      wrong["levels"] = levels;
      Rank fresh(group, 0, 0.1);
      try {
        fresh.steering().load_state(StateReader(wrong));
        return "";
      } catch (const Error& error) {
        return error.what();
      }
    };
    EXPECT_EQ(refusal({0, 1, 2}), "");
    EXPECT_EQ(refusal({0, 1}), "state of 2 tensors, expected 3");
    EXPECT_EQ(refusal({0, 1, 2, 0}), "state of 4 tensors, expected 3");
    EXPECT_EQ(refusal({0, 1, 3}), "state with level 3, expected one of 3");
    EXPECT_EQ(refusal({-1, 1, 2}), "state with level -1, expected one of 3");
    rank.step();
    rank.steering().end_epoch(0.1, false);
    EXPECT_THROW(rank.steering().load_state(StateReader(state)), Error) << "it has decided already";
  });
}

TEST(Steering, TheEndOfTrainingIsRecordedAndDecidesNothing) {
  run_loopback_groups(2, [](Group& group) {
    Rank rank(group, 0, 0.1);
    rank.steering().take_control_bytes();
    rank.step();
    rank.steering().end_epoch(0.1, true);
    EXPECT_EQ(rank.levels(), kScript[0].levels);
    EXPECT_EQ(rank.steering().take_control_bytes(), 0u);
    EXPECT_TRUE(rank.seen().empty());
    if (group.rank() > 0) return;
    EXPECT_GT(rank.steering().layers().at(0).norm, 0);
  });
}

}  // namespace
}  // namespace accordion
