// The engine goes on from what it saved.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <limits>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/engine/engine_testing.h"

namespace accordion {
namespace {

// A rank's steps and epochs, and what they gave.
class Training {
 public:
  Training(Group& group, const ControlOptions& control)
      : rank_(group.rank()),
        engine_(group, kTensors, {.control = control, .learning_rate = 0.1, .seed = 5}) {}

  void run(int from, int to) {
    for (int step = from; step < to; ++step) {
      // Gradients that fade, and a rate that falls once.
      auto gradients = gradients_of(rank_, step % 4);
      for (Floats& gradient : gradients)
        for (float& value : gradient) value *= std::exp(-0.3f * static_cast<float>(step));
      means.push_back(run_step(engine_, std::move(gradients)));
      const double rate = step < 7 ? 0.1 : 0.01;
      engine_.end_step(rate);
      if (step % kEpoch < kEpoch - 1) continue;
      const EpochReport report = engine_.end_epoch(rate);
      Json record = Json::array();
      for (const LayerRecord& layer : report.layers) record.push_back(to_json(layer));
      for (const WindowRecord& window : report.windows) record.push_back(to_json(window));
      for (std::size_t t = 0; t < kTensors.size(); ++t) record.push_back(engine_.level(t));
      const Traffic& traffic = report.stats.traffic;
      for (const std::uint64_t count : {traffic.payload_bytes, traffic.wire_bytes, traffic.control_bytes})
        record.push_back(count);
      records.push_back(record.dump());
    }
  }

  static constexpr int kEpoch = 3;
  std::vector<std::vector<Floats>> means;
  std::vector<std::string> records;
  Engine& engine() { return engine_; }

 private:
  int rank_;
  Engine engine_;
};

// After any number of steps, in the middle of an epoch or a window as well as between them.
TEST(Engine, GoesOnFromItsStateAsIfThereHadBeenNoStop) {
  ControlOptions windows = kAccordion, powersgd = kAccordion;
  windows.window = 2;
  powersgd.mild = "powersgd:approx-rank=4", powersgd.strong = "powersgd:approx-rank=1";
  const ControlOptions lgreco{.controller = "lgreco", .mild = "topk:keep=0.5", .strong = "topk:keep=0.02"};
  const ControlOptions qsgd{.codec = "qsgd:bits=4"}, dgc{.codec = "dgc:keep=0.001,warmup=true"};
  constexpr int kSteps = 12;
  for (const ControlOptions& control : {kAccordion, windows, powersgd, lgreco, qsgd, dgc})
    for (int stop : {1, 3, 7, 9})
      run_loopback_groups(2, [&](Group& group) {
        const std::string what = control.controller + " " + control.mild + " stop " + std::to_string(stop);
        Training whole(group, control), first(group, control), second(group, control);
        whole.run(0, kSteps);
        first.run(0, stop);
        State state;
        first.engine().save_state(StateWriter(state));
        second.engine().load_state(StateReader(state));
        second.run(stop, kSteps);
        const auto stopped = static_cast<std::ptrdiff_t>(stop);
        EXPECT_EQ(second.means, std::vector(whole.means.begin() + stopped, whole.means.end())) << what;
        EXPECT_EQ(second.records,
                  std::vector(whole.records.begin() + stopped / Training::kEpoch, whole.records.end()))
            << what;
      });
}

TEST(Engine, RefusesStateThatIsNotItsOwn) {
  std::vector<State> states(2);
  run_loopback_groups(2, [&](Group& group) {
    Engine engine(group, kTensors, {.control = kAccordion});
    run_step(engine, gradients_of(group.rank(), 0));
    engine.save_state(StateWriter(states[static_cast<std::size_t>(group.rank())]));
  });
  // Both refuse, though only one was given the other's.
  run_loopback_groups(2, [&](Group& group) {
    Engine engine(group, kTensors, {.control = kAccordion});
    try {
      engine.load_state(StateReader(states[1]));
      ADD_FAILURE() << "taken";
    } catch (const Error& error) {
      const std::string own = std::to_string(group.rank());
      EXPECT_EQ(std::string(error.what()).find("rank " + own + " of 2 was given the state of rank 1 of 2"),
                0u)
          << error.what();
    }
  });
  run_loopback_groups(1, [&](Group& group) {
    Engine engine(group, kTensors, {.control = kAccordion});
    EXPECT_THROW(engine.load_state(StateReader(states[0])), Error);
  });
}

// Nor does one wait for the other where one's state alone is damaged, whatever of it is.
TEST(Engine, WhatOneRankCannotLoadNoneDoes) {
  const auto refusals = [](const EngineOptions& options, const std::string& missing) {
    std::vector<std::string> refusals(2);
    run_loopback_groups(2, [&](Group& group) {
      Engine first(group, kTensors, options), engine(group, kTensors, options);
      run_step(first, gradients_of(group.rank(), 0));
      first.end_epoch(0.1);
      run_step(first, gradients_of(group.rank(), 1));
      State state;
      first.save_state(StateWriter(state));
      if (group.rank() == 1) {
        EXPECT_EQ(state.erase(missing), 1u) << missing;
      }
      try {
        engine.load_state(StateReader(state));
        ADD_FAILURE() << missing;
      } catch (const StateRefused& error) {
        refusals[static_cast<std::size_t>(group.rank())] = error.what();
      }
    });
    return refusals;
  };
  EngineOptions guarded{.control = kAccordion, .guard = GuardMode::kHarmless};
  for (const std::string missing :
       {"rank", "epoch", "control/levels", "control/window", "exchange/step", "exchange/a/residual"}) {
    const auto refused = refusals({.control = kAccordion}, missing);
    EXPECT_EQ(refused[1], "state: " + missing + " is missing");
    EXPECT_NE(refused[0].find("another rank"), std::string::npos) << refused[0];
  }
  EXPECT_EQ(refusals(guarded, "guard/levels")[1], "state: guard/levels is missing");
}

// What a rank has said of its samples holds after a stop; older states do not have it.
TEST(Engine, AShareOfTheSamplesIsKept) {
  run_loopback_groups(2, [&](Group& group) {
    Engine first(group, kTensors, {}), second(group, kTensors, {}), third(group, kTensors, {}),
        old(group, kTensors, {});
    first.set_batch(group.rank() == 0 ? 3 : 1, 4);
    State state;
    first.save_state(StateWriter(state));
    second.load_state(StateReader(state));
    EXPECT_EQ(run_step(second, gradients_of(group.rank(), 0)),
              run_step(first, gradients_of(group.rank(), 0)));
    EXPECT_EQ(second.exchange().weight(), group.rank() == 0 ? 1.5 : 0.5);
    third.load_state(StateReader(state), Residuals::kDrop);
    EXPECT_EQ(third.exchange().weight(), 1) << "it was another rank's, maybe of another group";
    EXPECT_EQ(state.erase("exchange/weight"), 1u);
    old.load_state(StateReader(state));
    EXPECT_EQ(old.exchange().weight(), 1);
    state["exchange/weight"] = std::vector{std::nan("")};
    EXPECT_THROW(old.load_state(StateReader(state)), StateRefused);
  });
}

// Without residuals any rank may go on from rank 0's, but rank 0 from no other: it alone knows what was decided.
TEST(Engine, RefusesAStateWithoutDecisions) {
  std::vector<State> states(2);
  run_loopback_groups(2, [&](Group& group) {
    Engine engine(group, kTensors, {.control = kAccordion});
    run_step(engine, gradients_of(group.rank(), 0));
    engine.save_state(StateWriter(states[static_cast<std::size_t>(group.rank())]));
  });
  run_loopback_groups(2, [&](Group& group) {
    Engine engine(group, kTensors, {.control = kAccordion});
    EXPECT_THROW(engine.load_state(StateReader(states[1]), Residuals::kDrop), StateOfAnotherRank);
  });
}

}  // namespace
}  // namespace accordion
