// What becomes of a step that is not finite, of one that fails, and of ranks that differ.
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

// Before anything is sent: the level would come into force in mid-training.
TEST(Engine, RefusesALevelThatSoManyRanksCannotUse) {
  run_loopback_groups(128, [](Group& group) {
    try {
      Engine(group, kTensors,
             {.control = {.controller = "accordion", .mild = "none", .strong = "sign-vote:count=true"}});
      ADD_FAILURE() << "accepted";
    } catch (const UsageError& error) {
      EXPECT_STREQ(error.what(),
                   "sign-vote: count=true on 128 ranks, expected at most 127: a byte holds no more");
    }
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
    differs_in("scaled", {.scaled = odd});
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

}  // namespace
}  // namespace accordion
