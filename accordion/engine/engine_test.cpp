// The engine between threads: what goes in is averaged, levels follow the controller, failures fail their step.
#include "accordion/engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <thread>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/base/noise_testing.h"
#include "accordion/comm/loopback.h"

namespace accordion {
namespace {

using Floats = std::vector<float>;

const std::vector<TensorInfo> kTensors = {{"a", {{40, 30}}}, {"b", {{50, 40}}}, {"c", {{9}}}};

Floats gradient(std::size_t tensor, int rank, int step) {
  return noise(kTensors[tensor].shape.count(),
               static_cast<unsigned>(1000 * step + 10 * rank) + static_cast<unsigned>(tensor));
}

// One step, a bucket a tensor, last tensors first. Throws what the engine says went wrong.
std::vector<Floats> run_step(Engine& engine, std::vector<Floats> gradients) {
  std::vector<std::promise<void>> done(gradients.size());
  for (std::size_t k = gradients.size(); k-- > 0;)
    engine.post({.values = std::span<float>(gradients[k]),
                 .slices = {{static_cast<int>(k), 0, gradients[k].size()}},
                 .last = k == 0},
                [&, k](const std::exception_ptr& failure) {
                  failure ? done[k].set_exception(failure) : done[k].set_value();
                });
  std::exception_ptr first;
  for (std::promise<void>& bucket : done) try {
      bucket.get_future().get();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  if (first) std::rethrow_exception(first);
  return gradients;
}

std::vector<Floats> gradients_of(int rank, int step) {
  std::vector<Floats> gradients;
  for (std::size_t t = 0; t < kTensors.size(); ++t) gradients.push_back(gradient(t, rank, step));
  return gradients;
}

const ControlOptions kAccordion{
    .controller = "accordion", .mild = "topk:keep=0.5", .strong = "topk:keep=0.02", .interval = 1};

TEST(Engine, GivesTheMeanOverSamples) {
  run_loopback_groups(3, [](Group& group) {
    Engine engine(group, kTensors, {});
    const std::int64_t samples[] = {5, 2, 0};
    engine.set_batch(samples[group.rank()], 7);
    const auto means = run_step(engine, gradients_of(group.rank(), 0));
    for (std::size_t t = 0; t < kTensors.size(); ++t)
      for (std::size_t i = 0; i < means[t].size(); ++i)
        ASSERT_NEAR(means[t][i], (5 * gradient(t, 0, 0)[i] + 2 * gradient(t, 1, 0)[i]) / 7, 1e-5);
    engine.set_batch(2);
    EXPECT_NEAR(run_step(engine, gradients_of(group.rank(), 1))[2][3],
                (gradient(2, 0, 1)[3] + gradient(2, 1, 1)[3] + gradient(2, 2, 1)[3]) / 3, 1e-5);
  });
}

// The same bits as an exchange that is called bucket by bucket, although buckets overlap here.
TEST(Engine, DoesWhatTheExchangeDoes) {
  for (const char* codec :
       {"none", "topk:keep=0.05", "powersgd:approx-rank=2", "qsgd:bits=4,share-scale=true"})
    run_loopback_groups(3, [&](Group& group) {
      Engine engine(group, kTensors, {.control = {.codec = codec}, .seed = 3});
      std::vector<std::vector<Floats>> got;
      for (int step = 0; step < 5; ++step) got.push_back(run_step(engine, gradients_of(group.rank(), step)));
      Exchange plain(group.gradients(), kTensors, {.levels = {parse_codec(codec)}, .seed = 3});
      for (int step = 0; step < 5; ++step) {
        auto gradients = gradients_of(group.rank(), step);
        for (std::size_t t = kTensors.size(); t-- > 0;)
          plain.mean(gradients[t], std::vector<Slice>{{static_cast<int>(t), 0, gradients[t].size()}});
        plain.end_step();
        EXPECT_EQ(got[static_cast<std::size_t>(step)], gradients) << codec << " step " << step;
      }
    });
}

// What a step leaves owed is known when the next one encodes, however early that was posted.
TEST(Engine, AStepMayBePostedBeforeTheLastOneHasEnded) {
  run_loopback_groups(2, [](Group& group) {
    const EngineOptions options{.control = {.codec = "topk:keep=0.02"}};
    Engine patient(group, kTensors, options), hasty(group, kTensors, options);
    constexpr int kSteps = 20;
    std::vector<std::vector<Floats>> expected, got;
    for (int step = 0; step < kSteps; ++step) {
      expected.push_back(run_step(patient, gradients_of(group.rank(), step)));
      got.push_back(gradients_of(group.rank(), step));
    }
    std::promise<void> all;
    for (int step = 0; step < kSteps; ++step)
      for (std::size_t k = 0; k < kTensors.size();
           ++k) {  // The first, which is prepared early, keeps a residual.
        const bool last = k + 1 == kTensors.size();
        Floats& gradient = got[static_cast<std::size_t>(step)][k];
        hasty.post({.values = std::span<float>(gradient),
                    .slices = {{static_cast<int>(k), 0, gradient.size()}},
                    .last = last},
                   [&, end = last && step + 1 == kSteps](const std::exception_ptr& failure) {
                     EXPECT_FALSE(failure);
                     if (end) all.set_value();
                   });
      }
    all.get_future().get();
    EXPECT_EQ(got, expected);
  });
}

TEST(Engine, LevelsFollowTheControllerOnEveryRank) {
  run_loopback_groups(2, [](Group& group) {
    Engine engine(group, kTensors, {.control = kAccordion, .learning_rate = 0.1});
    EXPECT_EQ(engine.levels().size(), 2u);
    std::vector<std::vector<int>> levels;
    std::uint64_t payload[4];
    // The same gradients again and again are no critical regime, until the rate falls.
    const double rates[] = {0.1, 0.1, 0.01, 0.01};
    for (int epoch = 0; epoch < 4; ++epoch) {
      for (int step = 0; step < 3; ++step) run_step(engine, gradients_of(group.rank(), step));
      levels.push_back({engine.level(0), engine.level(1)});
      const EpochReport report = engine.end_epoch(rates[epoch]);
      EXPECT_EQ(report.stats.steps, 3);
      payload[epoch] = report.stats.traffic.payload_bytes;
      if (group.rank() > 0) {
        EXPECT_TRUE(report.layers.empty());
        continue;
      }
      ASSERT_EQ(report.layers.size(), kTensors.size());
      EXPECT_EQ(report.layers[0].level, levels.back()[0]) << "the record has what was in force";
      EXPECT_GT(report.layers[0].norm, 0);
      EXPECT_EQ(report.layers[2].codec, "none");
    }
    EXPECT_EQ(levels, (std::vector<std::vector<int>>{{0, 0}, {0, 0}, {1, 1}, {0, 0}}));
    EXPECT_LT(payload[2] * 4, payload[1]);
    EXPECT_EQ(payload[3], payload[0]);
  });
}

TEST(Engine, WindowsOfSteps) {
  run_loopback_groups(2, [](Group& group) {
    ControlOptions control = kAccordion;
    control.window = 2;
    Engine engine(group, kTensors, {.control = control, .learning_rate = 0.1});
    std::vector<int> levels;
    for (int step = 0; step < 7; ++step) {
      levels.push_back(engine.level(0));
      run_step(engine, gradients_of(group.rank(), 0));
      engine.end_step(0.1, step == 6);
    }
    EXPECT_EQ(levels, (std::vector<int>{0, 0, 0, 0, 1, 1, 1}));
    const EpochReport report = engine.end_epoch(0.1, true);
    if (group.rank() > 0) return;
    ASSERT_EQ(report.windows.size(), 4u) << "the last as long as there were steps";
    EXPECT_EQ(report.windows[3].steps, 1);
    EXPECT_EQ(report.windows[2].layers[0].level, 1);
  });
}

// What nobody looks at is not added up, unless the record wants it.
TEST(Engine, WatchesWhatTheControllerLooksAt) {
  run_loopback_groups(2, [](Group& group) {
    const auto window = [&](const std::string& controller, bool record) {
      ControlOptions control = kAccordion;
      control.controller = controller;
      Engine engine(group, kTensors, {.control = control, .record_norms = record});
      run_step(engine, gradients_of(group.rank(), 0));
      return engine.exchange().take_window();
    };
    const auto norms = [&](const std::string& controller, bool record) {
      return window(controller, record).norms.size();
    };
    EXPECT_EQ(norms("accordion", false), group.rank() == 0 ? kTensors.size() : 0);
    EXPECT_EQ(norms("schedule", false), 0u);
    EXPECT_EQ(norms("schedule", true), group.rank() == 0 ? kTensors.size() : 0);
    for (const char* controller : {"accordion", "adaqs", "lgreco"}) {
      const WindowStats stats = window(controller, false);
      const std::string watching = group.rank() == 0 ? controller : "";
      EXPECT_EQ(stats.squares.size(), watching == "adaqs" ? kTensors.size() : 0) << controller;
      EXPECT_EQ(stats.trials.size(), watching == "lgreco" ? kTensors.size() : 0) << controller;
    }
  });
}

// Rank 0 and rank 1 pull in opposite directions: in the mean nothing is left of it.
TEST(Engine, WatchesTheMeanWhereThatIsAskedFor) {
  run_loopback_groups(2, [](Group& group) {
    for (const bool aggregated : {false, true}) {
      ControlOptions control = kAccordion;
      control.mild = "none";
      control.norms = aggregated ? "aggregated" : "local";
      Engine engine(group, kTensors, {.control = control});
      std::vector<Floats> gradients;
      for (const TensorInfo& tensor : kTensors)
        gradients.emplace_back(tensor.shape.count(), group.rank() == 0 ? 1.0f : -1.0f);
      run_step(engine, gradients);
      const EpochReport report = engine.end_epoch(0.1);
      if (group.rank() > 0) continue;
      EXPECT_NEAR(report.layers.at(0).norm, aggregated ? 0 : std::sqrt(1200), 1e-3);
    }
  });
}

TEST(Engine, CountsWhatItsDecisionsSend) {
  run_loopback_groups(2, [](Group& group) {
    Engine engine(group, kTensors, {});
    engine.end_epoch(0.1);
    EXPECT_EQ(engine.end_epoch(0.1).stats.traffic.control_bytes, (kTensors.size() + 1) * 8)
        << "a level for each tensor, and a batch size";
  });
}

// As published, everything of two dimensions is compressed, however small.
TEST(Engine, CompressesAsPublishedWhereThatIsAskedFor) {
  run_loopback_groups(2, [](Group& group) {
    for (const bool published : {false, true}) {
      Engine engine(group, {{"small", {{4, 5}}}},
                    {.control = {.codec = "topk:keep=0.1", .parity = published ? "paper" : "none"}});
      EXPECT_EQ(engine.compresses(0), published);
    }
  });
}

// DGC warms up over epochs, and nobody has to tell it which one it is.
TEST(Engine, CountsEpochs) {
  run_loopback_groups(2, [](Group& group) {
    Engine engine(group, kTensors, {.control = {.codec = "dgc:keep=0.001,warmup=true"}});
    std::uint64_t before = ~std::uint64_t{0};
    for (int epoch = 0; epoch < 4; ++epoch) {
      run_step(engine, gradients_of(group.rank(), epoch));
      const std::uint64_t sent = engine.end_epoch(0.1).stats.traffic.payload_bytes;
      EXPECT_LT(sent, before) << epoch;
      before = sent;
    }
  });
}

double norm_of(const std::vector<Floats>& tensors) {
  double squares = 0;
  for (const Floats& tensor : tensors)
    for (float value : tensor) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

// The norm of the whole model's gradient, over all buckets, on each rank for itself.
TEST(Engine, LimitsTheNormOfAStep) {
  run_loopback_groups(2, [](Group& group) {
    const auto gradients = gradients_of(group.rank(), 0), other = gradients_of(1 - group.rank(), 0);
    const double norm = norm_of(gradients), theirs = norm_of(other);
    for (const double limit : {0.5 * norm, 2 * std::max(norm, theirs)}) {
      double same = limit;  // On both ranks: the settings must agree.
      group.control().max(std::span(&same, 1));
      Engine engine(group, kTensors, {.communication = {.clip_norm = same}});
      const double mine = std::min(1.0, same / norm), its = std::min(1.0, same / theirs);
      const auto means = run_step(engine, gradients);
      for (std::size_t t = 0; t < means.size(); ++t)
        for (std::size_t i = 0; i < means[t].size(); ++i)
          ASSERT_NEAR(means[t][i], (mine * gradients[t][i] + its * other[t][i]) / 2, 1e-6);
    }
    // What is not finite has no norm to be limited: all is as bad as it came.
    Engine engine(group, kTensors, {.communication = {.on_non_finite = NonFinite::kSkip, .clip_norm = 1}});
    auto broken = gradients;
    if (group.rank() == 1) broken[1][3] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(norm_of(run_step(engine, broken)), 0);
    EXPECT_FALSE(engine.last_step_kept());
    EXPECT_GT(norm_of(run_step(engine, gradients)), 0);
  });
}

// Each step by its own norm, however many lie posted: rank 1 comes when rank 0 has posted them all.
TEST(Engine, LimitsTheNormOfEachStepThatLiesPosted) {
  run_loopback_groups(2, [](Group& group) {
    Engine engine(group, kTensors, {.communication = {.clip_norm = 1}});
    const float sizes[] = {1, 0.1f, 100};
    std::vector<std::vector<Floats>> steps;
    for (const float size : sizes) {
      steps.emplace_back();
      for (const TensorInfo& tensor : kTensors) steps.back().emplace_back(tensor.shape.count(), size);
    }
    const auto meet = [&] {
      std::int8_t there = 1;
      group.control().sum(std::span(&there, 1));
    };
    std::promise<void> all;
    if (group.rank() == 1) meet();
    for (std::vector<Floats>& step : steps)
      for (std::size_t k = 0; k < step.size(); ++k)
        engine.post(
            {.values = std::span<float>(step[k]),
             .slices = {{static_cast<int>(k), 0, step[k].size()}},
             .last = k + 1 == step.size()},
            [&, end = &step == &steps.back() && k + 1 == step.size()](const std::exception_ptr& failure) {
              EXPECT_FALSE(failure);
              if (end) all.set_value();
            });
    if (group.rank() == 0) meet();
    all.get_future().get();
    for (const std::vector<Floats>& step : steps) EXPECT_NEAR(norm_of(step), 1, 1e-3);
  });
}

// Of a limit for the step and one of the codec's own.
TEST(Engine, TheStricterOfTwoLimitsHolds) {
  run_loopback_groups(1, [](Group& group) {
    for (const double limit : {0.0, 1.0, 5.0}) {
      Engine engine(
          group, kTensors,
          {.control = {.codec = "dgc:keep=1,clip=2,momentum=0"}, .communication = {.clip_norm = limit}});
      EXPECT_NEAR(norm_of(run_step(engine, gradients_of(0, 0))), limit == 1 ? 1 : 2, 1e-3) << limit;
    }
  });
}

// However many threads and buckets: no more time than went by, and of that none twice.
TEST(Engine, IsBusyNoLongerThanItTakes) {
  run_loopback_groups(2, [](Group& group) {
    Engine engine(group, kTensors, {.control = {.codec = "topk:keep=0.1"}});
    const auto start = std::chrono::steady_clock::now();
    for (int step = 0; step < 40; ++step) run_step(engine, gradients_of(group.rank(), step));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const Overlap overlap = engine.take_overlap();
    EXPECT_GT(overlap.busy_seconds, 0);
    EXPECT_LE(overlap.busy_seconds, took.count());
    EXPECT_LE(overlap.exposed_seconds, overlap.busy_seconds);
    EXPECT_EQ(engine.take_overlap().busy_seconds, 0) << "taking resets";
  });
}

// Rank 1 is late with all but the last bucket: rank 0 waits for it while its own backward goes on. If it may begin.
TEST(Engine, KnowsWhatWasHiddenBehindBackward) {
  for (const bool deferred : {false, true})
    run_loopback_groups(2, [&](Group& group) {
      Engine engine(group, kTensors, {.communication = {.deferred = deferred}});
      auto gradients = gradients_of(group.rank(), 0);
      std::promise<void> done;
      const auto post = [&](std::size_t k) {
        engine.post({.values = std::span<float>(gradients[k]),
                     .slices = {{static_cast<int>(k), 0, gradients[k].size()}},
                     .last = k == 0},
                    [&, k](const std::exception_ptr& failure) {
                      EXPECT_FALSE(failure);
                      if (k == 0) done.set_value();
                    });
      };
      if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
      post(2);
      post(1);
      std::int8_t there = 1;
      group.control().sum(std::span(&there, 1));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      post(0);
      done.get_future().get();
      const Overlap overlap = engine.take_overlap();
      if (deferred) {
        EXPECT_EQ(overlap.hidden_share(), 0) << "nothing began before the last bucket was there";
      } else if (group.rank() == 0) {
        EXPECT_GT(overlap.hidden_share(), 0.3);
      }
    });
}

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

// A loss scale that is too large shows in a step like any other: it is dropped, and the norms go on.
TEST(Engine, NoticesWhatIsNotFiniteWhereLossesAreScaled) {
  run_loopback_groups(2, [](Group& group) {
    Engine engine(group, kTensors, {.record_norms = true, .scaled = true});
    for (int step = 0; step < 2; ++step) {
      auto gradients = gradients_of(group.rank(), 0);
      if (step == 0) gradients[0][5] = std::numeric_limits<float>::infinity();
      const auto means = run_step(engine, gradients);
      EXPECT_EQ(engine.last_step_kept(), step == 1);
      EXPECT_EQ(std::isnan(means[2][0]), step == 0) << "all of the step";
    }
    const EpochReport report = engine.end_epoch(0.1);
    EXPECT_EQ(report.stats.dropped_steps, 1);
    if (group.rank() > 0) return;
    EXPECT_NEAR(report.layers.at(0).norm, norm_of({gradient(0, 0, 0)}), 1e-3);
  });
}

TEST(Engine, SaysWhetherTheLastStepWasKept) {
  run_loopback_groups(2, [](Group& group) {
    Engine engine(
        group, kTensors,
        {.control = {.codec = "topk:keep=0.1"}, .communication = {.on_non_finite = NonFinite::kSkip}});
    for (int step = 0; step < 3; ++step) {
      auto gradients = gradients_of(group.rank(), step);
      if (step == 1 && group.rank() == 1) gradients[1][7] = std::nanf("");
      const auto means = run_step(engine, gradients);
      EXPECT_EQ(engine.last_step_kept(), step != 1);
      EXPECT_EQ(means[0] == Floats(means[0].size()), step == 1) << "a step that is skipped is zero";
    }
    EXPECT_EQ(engine.end_epoch(0.1).stats.dropped_steps, 1);
  });
}

TEST(Engine, AStepThatAllRefuseCanBeFollowedByAnother) {
  for (const bool deferred : {false, true})
    run_loopback_groups(2, [&](Group& group) {
      Engine engine(group, kTensors,
                    {.control = {.codec = "topk:keep=0.1"},
                     .communication = {.on_non_finite = NonFinite::kThrow, .deferred = deferred}});
      Engine calm(group, kTensors,
                  {.control = {.codec = "topk:keep=0.1"}, .communication = {.deferred = deferred}});
      auto spoilt = gradients_of(group.rank(), 0);
      if (group.rank() == 1) spoilt[2][0] = std::nanf("");
      EXPECT_THROW(run_step(engine, spoilt), Error);
      // Nothing of the step stayed behind, in residuals or in flags; but draws go on.
      run_step(calm, std::vector<Floats>{Floats(1200), Floats(2000), Floats(9)});
      for (int step = 1; step < 3; ++step)
        EXPECT_EQ(run_step(engine, gradients_of(group.rank(), step)),
                  run_step(calm, gradients_of(group.rank(), step)));
    });
}

// A communicator that fails when it is told to, on this rank alone, before it reaches the others.
class Failing final : public Communicator {
 public:
  explicit Failing(Communicator& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::unique_ptr<Transfer> start_send(int to, std::span<const std::byte> bytes) override {
    ++calls;
    if (fails) throw Error("the cable is out");
    return inner_.start_send(to, bytes);
  }
  std::unique_ptr<Transfer> start_receive(int from, std::span<std::byte> bytes) override {
    return inner_.start_receive(from, bytes);
  }

  std::atomic<bool> fails = false;
  std::atomic<int> calls = 0;

 private:
  Communicator& inner_;
};

std::string failure_of(Engine& engine, int rank, int step) {
  try {
    run_step(engine, gradients_of(rank, step));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Engine, ABucketThatFailsFailsItsStepAndAllThatFollow) {
  for (const bool deferred : {false, true})
    run_loopback_groups(2, [&](Group& inner) {
      const auto gradients = std::make_shared<Failing>(inner.gradients());
      const std::shared_ptr<Communicator> control(&inner.control(), [](Communicator*) {});
      Group group(gradients, control);
      Engine engine(group, kTensors,
                    {.control = {.codec = "topk:keep=0.1"}, .communication = {.deferred = deferred}});
      run_step(engine, gradients_of(group.rank(), 0));
      if (group.rank() == 1) {  // Rank 0 leaves, once it has seen what it should see.
        EXPECT_NE(failure_of(engine, 1, 1), "");
        return;
      }
      const int before = gradients->calls;
      gradients->fails = true;
      EXPECT_EQ(failure_of(engine, 0, 1), "the cable is out");
      EXPECT_EQ(gradients->calls, before + 1) << "nothing more of the step was sent";
      EXPECT_FALSE(engine.last_step_kept());
      gradients->fails = false;
      EXPECT_EQ(failure_of(engine, 0, 2),
                "no gradients are exchanged any more, because an earlier step failed: the cable is out");
      EXPECT_EQ(failure_of(engine, 0, 3), failure_of(engine, 0, 4)) << "the reason is given once";
      EXPECT_EQ(gradients->calls, before + 1);
      EXPECT_EQ(engine.exchange().take_epoch_stats().steps, 1) << "nothing of the others was kept";
    });
}

// What no memory holds cannot be prepared.
std::string failure_of_absurd_bucket(Engine& engine) {
  Half first{};
  std::promise<std::string> reason;
  engine.post({.values = std::span(&first, std::size_t{1} << 62), .slices = {}, .last = true},
              [&](const std::exception_ptr& failure) {
                try {
                  if (failure) std::rethrow_exception(failure);
                  reason.set_value("");
                } catch (const std::exception& error) {
                  reason.set_value(error.what());
                }
              });
  return reason.get_future().get();
}

TEST(Engine, ABucketThatCannotBePreparedFailsItsStep) {
  run_loopback_groups(1, [](Group& group) {
    Engine engine(group, kTensors, {});
    EXPECT_NE(failure_of_absurd_bucket(engine), "");
    EXPECT_FALSE(engine.last_step_kept());
    EXPECT_NE(failure_of(engine, 0, 0), "") << "as do all that follow";
  });
}

// The others wait for messages that will never come: they are told so, and need not wait until the rank has left.
TEST(Engine, ARankThatFailsAloneLetsTheOthersGo) {
  std::promise<void> released;
  run_loopback_groups(2, [&](Group& group) {
    Engine engine(group, kTensors, {});
    if (group.rank() == 1) {
      EXPECT_NE(failure_of(engine, 1, 0), "");
      released.set_value();
      return;
    }
    EXPECT_NE(failure_of_absurd_bucket(engine), "");
    EXPECT_EQ(released.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  });
}

TEST(Engine, RanksThatDifferAreRefusedByName) {
  run_loopback_groups(2, [](Group& group) {
    const bool odd = group.rank() == 1;
    const auto refusal = [&](const std::vector<TensorInfo>& tensors,
                             const EngineOptions& options) -> std::string {
      try {
        Engine engine(group, tensors, options);
        return "";
      } catch (const std::exception& error) {
        return error.what();
      }
    };
    EXPECT_EQ(refusal({{"a", {{4, odd ? 3 : 2}}}}, {}),
              "rank 1 differs from rank 0 in its tensors: a [4, 3] against a [4, 2]");
    EXPECT_EQ(refusal(kTensors, {.seed = odd ? 1u : 2u}),
              "rank 1 differs from rank 0 in its settings: seed = 1 against seed = 2");
    EXPECT_EQ(refusal(kTensors, {.control = {.codec = odd ? "fp16" : "none"}}),
              "rank 1 differs from rank 0 in its settings: codec = \"fp16\" against codec = \"none\"");
    const auto differs_in = [&](const std::string& setting, const EngineOptions& options) {
      EXPECT_NE(refusal(kTensors, options).find("in its settings: " + setting + " = "), std::string::npos)
          << setting;
    };
    differs_in("clip_norm", {.communication = {.clip_norm = odd ? 1.0 : 0.0}});
    differs_in("deferred", {.communication = {.deferred = odd}});
    differs_in("on_non_finite",
               {.communication = {.on_non_finite = odd ? NonFinite::kSkip : NonFinite::kThrow}});
    EngineOptions routed;
    if (odd) routed.routing.min_count += 1;
    differs_in("min_count", routed);
    routed = {};
    if (odd) routed.routing.min_rate += 1;
    differs_in("min_rate", routed);
    routed = {};
    routed.routing.published = odd;
    differs_in("published", routed);
    // What contradicts itself is refused alike by all.
    EXPECT_NE(refusal(kTensors, {.control = {.controller = "accordion"}}).find("expects mild and strong"),
              std::string::npos);
    EXPECT_NE(refusal(kTensors, {.control = {.controller = "acordion"}}).find("acordion"), std::string::npos);
  });
}

TEST(Engine, RecordsWhatAnEpochLeftBehind) {
  const EpochReport report{.epoch = 3,
                           .stats = {.steps = 10,
                                     .dropped_steps = 2,
                                     .traffic = {.payload_bytes = 101,
                                                 .wire_bytes = 102,
                                                 .paper_floats = 104,
                                                 .entries = 105,
                                                 .saturated = 106,
                                                 .control_bytes = 103}},
                           .overlap = {.busy_seconds = 4, .exposed_seconds = 1},
                           .layers = {{.name = "a"}},
                           .windows = {{.window = 7, .layers = {}}}};
  const EpochRecord record = to_record(report);
  EXPECT_EQ(record.epoch, 3);
  EXPECT_EQ(record.steps, 10);
  EXPECT_EQ(record.dropped_steps, 2);
  EXPECT_EQ(record.payload_bytes, 101u);
  EXPECT_EQ(record.wire_bytes, 102u);
  EXPECT_EQ(record.control_bytes, 103u);
  EXPECT_EQ(record.paper_floats, 104u);
  EXPECT_EQ(record.entries, 105u);
  EXPECT_EQ(record.saturated, 106u);
  EXPECT_EQ(record.hidden_share, 0.75);
  EXPECT_EQ(record.layers.at(0).name, "a");
  EXPECT_EQ(record.windows.at(0).window, 7);
}

TEST(Engine, RefusesSharesThatCannotBe) {
  run_loopback_groups(1, [](Group& group) {
    Engine engine(group, kTensors, {});
    EXPECT_THROW(engine.set_batch(3, 2), UsageError);
    EXPECT_THROW(engine.set_batch(0, 0), UsageError);
    EXPECT_THROW(engine.set_batch(-1, 2), UsageError);
  });
}

}  // namespace
}  // namespace accordion
