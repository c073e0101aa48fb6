// DGC under a guard: a profile decides before the first step, once, for all tensors.
#include "accordion/engine/guard_profile.h"

#include <gtest/gtest.h>

#include <fstream>

#include "accordion/base/error.h"
#include "accordion/base/temporary_folder.h"
#include "accordion/engine/engine_testing.h"

namespace accordion {
namespace {

constexpr double kFastLink = 1000, kSlowLink = 0.001;  // Gbit/s

// Of kTensors: backward takes 10 ms; the codecs take 1 ms and send a tenth and half of it.
perf::Profile profile_at(double gbps) {
  perf::Profile profile;
  profile.network = {.ranks = 2, .bandwidth_gbps = gbps};
  for (perf::CollectiveProfile& each : profile.network.collectives) each.piece = {1, gbps};
  perf::ModelProfile model{.model = "three", .batch = 8, .parameters = 3209, .backward_ms = 10, .rest_ms = 5};
  for (const auto& [setting, bytes] :
       {std::pair("dgc:keep=0.05", 1280.0), std::pair("dgc:keep=0.25,clip=2", 6400.0)})
    model.codecs.push_back({.codec = setting,
                            .encode_ms = 0.5,
                            .decode_ms = 0.5,
                            .rounds = {{.collective = perf::Collective::kGather, .bytes = bytes}}});
  profile.models.push_back(model);
  return profile;
}

ProfileVerdict verdict(double gbps, std::vector<const char*> settings, perf::Goal goal, int ranks = 2) {
  const perf::Profile profile = profile_at(gbps);
  std::vector<CodecOptions> levels;
  for (const char* setting : settings) levels.push_back(parse_codec(setting));
  return verdict_of(profile, profile.models[0], levels, ranks, goal);
}

TEST(GuardProfile, DecidesByTheStepOfBothKinds) {
  for (const perf::Goal goal : {perf::Goal::kHarmless, perf::Goal::kFastest}) {
    const ProfileVerdict slow = verdict(kSlowLink, {"dgc:keep=0.05"}, goal);
    EXPECT_TRUE(slow.compress);
    // Backward, then 1 ms of the codec, a gather of 1280 bytes, the last flag, and the rest.
    EXPECT_NEAR(slow.seconds, 0.016 + 1280 * 8e-6, 1e-4);
    // 3209 values to the other rank, and its own back.
    EXPECT_NE(slow.reason.find("with 2 workers a step takes 26.3 ms compressed and 118 ms plain"),
              std::string::npos)
        << slow.reason;
    const ProfileVerdict fast = verdict(kFastLink, {"dgc:keep=0.05"}, goal);
    EXPECT_FALSE(fast.compress);
    EXPECT_NEAR(fast.seconds, 0.015, 1e-4);
    EXPECT_FALSE(verdict(kSlowLink, {"dgc:keep=0.05"}, goal, 1).compress) << "one worker sends nothing";
  }
}

// A controller may put either into force, so the slower one counts: with nine ranks a gather of half the gradient from each takes
// longer than the plain sum, and one of a tenth does not.
TEST(GuardProfile, TheSlowestLevelCounts) {
  const auto at = [](std::vector<const char*> settings) {
    return verdict(kSlowLink, std::move(settings), perf::Goal::kHarmless, 9).compress;
  };
  EXPECT_TRUE(at({"dgc:keep=0.05"}));
  EXPECT_FALSE(at({"dgc:keep=0.25,clip=2"}));
  EXPECT_FALSE(at({"dgc:keep=0.25,clip=2", "dgc:keep=0.05"}));
  EXPECT_FALSE(at({"dgc:keep=0.05", "dgc:keep=0.25,clip=2"}));
}

// What is a hair faster is worth it where traffic counts, and not where only time does.
TEST(GuardProfile, GoalsDifferWhereStepsAreAlike) {
  perf::Profile profile = profile_at(kFastLink);
  perf::CodecProfile& codec = profile.models[0].codecs[0];
  codec.encode_ms = codec.decode_ms = 0;
  profile.network[perf::Collective::kSum].piece.latency_us = 40;
  const std::vector levels = {parse_codec("dgc:keep=0.05")};
  profile.network[perf::Collective::kGather].piece.latency_us = 0;
  const auto decided = [&](perf::Goal goal) {
    return verdict_of(profile, profile.models[0], levels, 2, goal).compress;
  };
  EXPECT_TRUE(decided(perf::Goal::kHarmless));
  EXPECT_FALSE(decided(perf::Goal::kFastest));
  codec.rounds[0].bytes = 1e6;
  profile.network[perf::Collective::kGather].piece.bandwidth_gbps = 1e6;
  EXPECT_FALSE(decided(perf::Goal::kHarmless)) << "it would send more";
}

class GuardedByProfile : public ::testing::Test {
 protected:
  GuardProfile written(double gbps) {
    const auto path = folder_.path() / "profile.json";
    std::ofstream(path) << perf::profile_text(profile_at(gbps));
    return {.file = path.string()};
  }
  EngineOptions options(double gbps, const char* codec = "dgc:keep=0.05") {
    return {.control = {.codec = codec}, .guard = GuardMode::kHarmless, .profile = written(gbps)};
  }
  std::string refusal(const EngineOptions& given) {
    std::string words[] = {"accepted", "accepted"};
    run_loopback_groups(2, [&](Group& group) {
      try {
        Engine(group, kTensors, given);
      } catch (const std::exception& error) {
        words[group.rank()] = error.what();
      }
    });
    EXPECT_EQ(words[0] == "accepted", words[1] == "accepted") << words[0] << "; " << words[1];
    return words[0];
  }

 private:
  TemporaryFolder folder_{std::filesystem::temp_directory_path() / "accordion-guard-profile-"};
};

std::vector<Floats> three_steps(Engine& engine, int rank) {
  std::vector<Floats> last;
  for (int step = 0; step < 3; ++step) last = run_step(engine, gradients_of(rank, step));
  return last;
}

TEST_F(GuardedByProfile, IsPlainOrDgcToTheLastBit) {
  for (const double gbps : {kFastLink, kSlowLink}) {
    // The codec's limit of norms is no part of plain training.
    const EngineOptions guarded = options(gbps, gbps == kFastLink ? "dgc:keep=0.25,clip=2" : "dgc:keep=0.05");
    run_loopback_groups(2, [&](Group& group) {
      Engine engine(group, kTensors, guarded);
      EXPECT_EQ(engine.compresses(0), gbps == kSlowLink) << "known before the first step";
      EXPECT_EQ(engine.communication().clip_norm, 0);
      Engine alone(group, kTensors, {.control = {.codec = gbps == kSlowLink ? "dgc:keep=0.05" : "none"}});
      EXPECT_EQ(three_steps(engine, group.rank()), three_steps(alone, group.rank()));

      const EpochReport report = engine.end_epoch(0.1);
      if (group.rank() != 0) return;
      ASSERT_EQ(report.guard.size(), 1u);
      const GuardEvent& event = report.guard[0];
      const int level = gbps == kSlowLink ? 0 : kDense;
      EXPECT_EQ(event.event, "decide");
      EXPECT_EQ(event.step, 0);
      EXPECT_EQ(event.levels, (std::vector{level, level, level}));
      EXPECT_GT(event.predicted_ms, 14);
      EXPECT_NE(event.reason.find("by the profile"), std::string::npos) << event.reason;
      EXPECT_EQ(report.layers[0].level, level);
      if (level == kDense) {
        EXPECT_EQ(report.layers[0].reason, "dense: " + event.reason);
      }
    });
  }
}

TEST_F(GuardedByProfile, CanBeReplayedWithoutTheProfile) {
  for (const double gbps : {kFastLink, kSlowLink}) {
    EngineOptions given = options(gbps, "dgc:keep=0.25,clip=2");
    run_loopback_groups(2, [&](Group& group) {
      Engine engine(group, kTensors, given);
      const std::vector<Floats> first = three_steps(engine, group.rank());
      std::vector<GuardEvent> events = engine.end_epoch(0.1).guard;
      // Every rank reads them from the record.
      if (group.rank() != 0)
        events = {{.event = "decide", .levels = std::vector<int>(3, gbps == kSlowLink ? 0 : kDense)}};
      EngineOptions again = given;
      again.profile = {};
      again.replayed_guard = events;
      Engine replayed(group, kTensors, again);
      EXPECT_EQ(replayed.communication().clip_norm, engine.communication().clip_norm);
      EXPECT_EQ(three_steps(replayed, group.rank()), first);
    });
  }
}

TEST_F(GuardedByProfile, AControllersLevelsStayItsOwn) {
  EngineOptions given = options(kSlowLink);
  given.control = {.controller = "schedule",
                   .mild = "dgc:keep=0.25,clip=2",
                   .strong = "dgc:keep=0.05,clip=2",
                   .plan = "mild@0-1,strong"};
  perf::Profile profile = profile_at(kSlowLink);
  profile.models[0].codecs[0].codec = "dgc:keep=0.05,clip=2";
  std::ofstream(given.profile.file) << perf::profile_text(profile);
  run_loopback_groups(2, [&](Group& group) {
    Engine engine(group, kTensors, given);
    EXPECT_EQ(engine.level(0), 0);
    three_steps(engine, group.rank());
    const EpochReport first = engine.end_epoch(0.1);
    EXPECT_EQ(engine.level(0), 1);
    three_steps(engine, group.rank());
    const EpochReport second = engine.end_epoch(0.1);

    EngineOptions again = given;
    again.profile = {};
    for (const int step : {0, 3})
      again.replayed_guard.push_back(
          {.step = step,
           .event = "decide",
           .levels = std::vector<int>(3, step > 0),
           .reason = step > 0 ? "the controller's levels have changed" : "as it was"});
    Engine replayed(group, kTensors, again);
    for (const EpochReport& recorded : {first, second}) {
      three_steps(replayed, group.rank());
      const EpochReport report = replayed.end_epoch(0.1);
      EXPECT_EQ(replayed.level(0), 1);
      EXPECT_EQ(report.guard.size(), recorded.guard.size());
      ASSERT_EQ(report.layers.size(), recorded.layers.size());
      for (std::size_t i = 0; i < report.layers.size(); ++i) {
        EXPECT_EQ(report.layers[i].level, recorded.layers[i].level) << "of the epoch, not of the next one";
        EXPECT_EQ(report.layers[i].codec, recorded.layers[i].codec);
      }
    }
    if (group.rank() != 0) return;
    ASSERT_EQ(first.guard.size(), 2u) << "for the record, so that a replay has both";
    EXPECT_EQ(first.guard[1].step, 3);
    EXPECT_EQ(first.guard[1].levels, (std::vector{1, 1, 1}));
    EXPECT_TRUE(second.guard.empty());
  });
}

TEST_F(GuardedByProfile, AStateGoesOnWithItsOwnVerdictOnly) {
  const EngineOptions plain = options(kFastLink);
  run_loopback_groups(2, [&](Group& group) {
    Engine engine(group, kTensors, plain);
    three_steps(engine, group.rank());
    State saved;
    engine.save_state(StateWriter(saved));
    Engine resumed(group, kTensors, plain);
    resumed.load_state(StateReader(saved));
    EXPECT_FALSE(resumed.compresses(0));
    EXPECT_EQ(resumed.end_epoch(0.1).guard.size(), group.rank() == 0 ? 1u : 0u)
        << "as if there had been no stop";
    if (group.rank() == 0) written(kSlowLink);  // And nobody else reads it.
    Engine turned(group, kTensors, plain);
    EXPECT_THROW(turned.load_state(StateReader(saved)), Error);
  });
}

TEST_F(GuardedByProfile, RefusalsComeOnEveryRank) {
  EngineOptions given = options(kFastLink);
  EXPECT_EQ(refusal(given), "accepted");
  EngineOptions without = given;
  without.profile = {};
  EXPECT_NE(refusal(without).find("expected guard=none, or with accordion train profile=FILE"),
            std::string::npos);
  EngineOptions missing = given;
  missing.profile.file += ".not";
  EXPECT_NE(refusal(missing).find("profile.json.not"), std::string::npos);
  EngineOptions batch = given;
  batch.profile.model = "three";
  batch.profile.batch = 9;
  EXPECT_NE(refusal(batch).find("three with batch 8"), std::string::npos) << refusal(batch);
  EngineOptions codec = given;
  codec.control.codec = "dgc:keep=0.5";
  EXPECT_NE(refusal(codec).find("has no times of dgc:keep=0.5,"), std::string::npos) << refusal(codec);
  perf::Profile larger = profile_at(kFastLink);
  larger.models[0].parameters = 4000;
  std::ofstream(given.profile.file) << perf::profile_text(larger);
  EXPECT_NE(refusal(given).find("has 4000 parameters, expected a profile of this one, with 3209"),
            std::string::npos)
      << refusal(given);
}

}  // namespace
}  // namespace accordion
