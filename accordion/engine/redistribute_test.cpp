// What ranks are owed reaches a group of another size: its mean stays, whatever the codec.
#include "accordion/engine/redistribute.h"

#include <gtest/gtest.h>

#include "accordion/base/error.h"
#include "accordion/engine/engine_testing.h"

namespace accordion {
namespace {

std::vector<State> states_of(const ControlOptions& control, int ranks) {
  std::vector<State> states(static_cast<std::size_t>(ranks));
  run_loopback_groups(ranks, [&](Group& group) {
    Engine engine(group, kTensors, {.control = control, .learning_rate = 0.1, .seed = 3});
    for (int step = 0; step < 4; ++step) run_step(engine, gradients_of(group.rank(), step));
    engine.save_state(StateWriter(states[static_cast<std::size_t>(group.rank())]));
  });
  return states;
}

// As `ranks` ranks take over from those that had `states`.
std::vector<State> handed_on(const std::vector<State>& states, int ranks) {
  std::vector<State> result;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<State> taken_over;
    for (std::size_t r = static_cast<std::size_t>(rank); r < states.size();
         r += static_cast<std::size_t>(ranks))
      taken_over.push_back(states[r]);
    result.push_back(redistributed(states[0], taken_over, rank, ranks));
  }
  return result;
}

// What is owed comes out when a tensor goes dense and its gradient is nothing: the mean that all ranks get then.
std::vector<Floats> owed(const ControlOptions& control, const std::vector<State>& states) {
  std::vector<Floats> means;
  run_loopback_groups(static_cast<int>(states.size()), [&](Group& group) {
    Engine engine(group, kTensors, {.control = control, .seed = 3});
    engine.load_state(StateReader(states[static_cast<std::size_t>(group.rank())]));
    engine.exchange().set_levels(std::vector<int>(kTensors.size(), kDense));
    std::vector<Floats> nothing;
    for (const TensorInfo& tensor : kTensors) nothing.emplace_back(tensor.shape.count());
    std::vector<Floats> mean = run_step(engine, std::move(nothing));
    if (group.rank() == 0) means = std::move(mean);
  });
  return means;
}

TEST(Redistribute, MeanOfWhatIsOwedStays) {
  for (const char* codec :
       {"topk:keep=0.02", "powersgd:approx-rank=2", "sign-scaled", "sign-scaled:chunked=true",
        "randomk:keep=0.05,feedback=true", "fp16:feedback=true", "dgc:keep=0.01"})
    for (const int before : {1, 2, 3, 4}) {
      const ControlOptions control{.codec = codec};
      const std::vector<State> states = states_of(control, before);
      const std::vector<Floats> expected = owed(control, states);
      EXPECT_GT(norm_of(expected), 0) << codec;
      for (const int now : {1, 2, 3, 4, 5}) {
        const std::vector<Floats> found = owed(control, handed_on(states, now));
        for (std::size_t t = 0; t < expected.size(); ++t)
          for (std::size_t k = 0; k < expected[t].size(); ++k)
            ASSERT_NEAR(found[t][k], expected[t][k], 1e-5 * (1 + std::abs(expected[t][k])))
                << codec << ", " << before << " to " << now << ", tensor " << t << ", element " << k;
      }
    }
}

double mean_of(const std::vector<State>& states, const std::string& name, std::size_t element) {
  double sum = 0;
  for (const State& state : states) sum += std::get<Floats>(state.at(name)).at(element);
  return sum / static_cast<double>(states.size());
}

TEST(Redistribute, MeanOfAccumulatedMomentumStays) {
  const std::vector<State> states = states_of({.codec = "dgc:keep=0.01"}, 3);
  const std::string name = "exchange/a/momentum";
  for (const int now : {1, 2, 5})
    for (std::size_t element = 0; element < 1200; element += 7)
      EXPECT_NEAR(mean_of(handed_on(states, now), name, element), mean_of(states, name, element), 1e-6);
}

// A piece that ranks keep for themselves and that is not handed on would be lost silently.
TEST(Redistribute, KnowsEveryPieceInWhichRanksDiffer) {
  for (const char* codec : {"none", "fp16:feedback=true", "bf16:feedback=true", "topk:keep=0.02",
                            "mstopk:keep=0.02", "randomk:keep=0.05,feedback=true", "dgc:keep=0.01",
                            "sign-vote", "sign-scaled", "sign-scaled:chunked=true", "qsgd:bits=4", "terngrad",
                            "powersgd:approx-rank=2", "atomo", "threshold:lambda=0.5"}) {
    const std::vector<State> states = states_of({.codec = codec}, 2);
    for (const auto& [name, value] : states[1]) {
      if (value == states[0].at(name) || name == "rank") continue;
      const std::string piece = name.substr(name.rfind('/') + 1);
      EXPECT_TRUE(piece == "residual" || piece == "momentum" || piece == "owed" || piece == "counts")
          << codec << ": " << name;
    }
  }
}

TEST(Redistribute, RefusesStatesThatDoNotBelongTogether) {
  std::vector<State> states = states_of({.codec = "topk:keep=0.02"}, 2);
  std::get<Floats>(states[1].at("exchange/a/residual")).pop_back();
  EXPECT_THROW(handed_on(states, 1), Error);
}

}  // namespace
}  // namespace accordion
