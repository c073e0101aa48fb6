// The engine between threads: what goes in is averaged, levels follow the controller.
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
      std::int64_t of_layers = 0;
      for (const LayerRecord& layer : report.layers) of_layers += layer.payload_bytes.value();
      EXPECT_EQ(of_layers, static_cast<std::int64_t>(payload[epoch])) << "every byte is some tensor's";
      EXPECT_EQ(report.layers[2].payload_bytes, 3 * 4 * report.layers[2].elements) << "dense";
      EXPECT_TRUE(report.step_split);
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
