#include "accordion/perf/advice.h"

#include <gtest/gtest.h>

#include "accordion/base/error.h"
#include "accordion/perf/published.h"
#include "accordion/perf/verdict.h"

namespace accordion::perf {
namespace {

// Two workers on a link of 1 Gbit/s: 8 MB of gradients in two buckets.
Profile example() {
  Profile profile;
  profile.network = {.ranks = 2, .bandwidth_gbps = 1};
  for (CollectiveProfile& each : profile.network.collectives)
    each.piece = {.latency_us = 50, .bandwidth_gbps = 1};
  profile.memory_gb = 0.001;
  const auto codec = [](std::string name, double encode, double decode, double per_message, Collective kind,
                        double bytes) {
    return CodecProfile{.codec = std::move(name),
                        .encode_ms = encode,
                        .decode_ms = decode,
                        .decode_ms_per_message = per_message,
                        .rounds = {{.collective = kind, .bytes = bytes}},
                        .extra_memory_bytes_per_parameter = 4};
  };
  profile.models = {{.model = "small",
                     .batch = 8,
                     .parameters = 2'000'000,
                     .backward_ms = 20,
                     .rest_ms = 5,
                     .slowdown = 1.05,
                     .stretch = 0.5,
                     .buckets = {{10, 1'000'000}, {20, 1'000'000}},
                     .codecs = {codec("topk:keep=0.01", 3, 1, 0.1, Collective::kGather, 160'000),
                                codec("powersgd:approx-rank=4", 2, 2, 0, Collective::kSum, 80'000)}}};
  return profile;
}

TEST(Advice, PartsAddUpToTheStep) {
  const Profile profile = example();
  for (const bool published : {false, true})
    for (const int workers : {2, 8, 100})
      for (const double gbps : {0.1, 1.0, 100.0}) {
        const Case it{profile, profile.models[0], published};
        for (const std::string& method : methods(it)) {
          const Prediction step = predict(it, method, workers, gbps);
          EXPECT_NEAR(step.backward + step.encoding + step.communication + step.decoding + step.rest,
                      step.step, 1e-9 * step.step);
          EXPECT_GE(step.communication, 0);
        }
      }
}

TEST(Advice, IsWhatTheModelsSay) {
  const Profile profile = example();
  const Case ours{profile, profile.models[0]}, theirs{profile, profile.models[0], true};
  const StepModel step = step_model(profile, profile.models[0], "topk:keep=0.01", 4, 10);
  EXPECT_EQ(predict(ours, "topk:keep=0.01", 4, 10).step, step_seconds(step, std::vector<int>(2, 0)));
  const published::Training training{.gradient_bytes = 8e6, .backward = 0.02, .slowdown = 1.05};
  EXPECT_DOUBLE_EQ(predict(theirs, kPlain, 4, 10).step,
                   published::plain_seconds(training, 4, {50e-6, 10e9 / 8}));
  const published::Method topk{.encode_decode = 4e-3, .decode_per_worker = 1e-4, .gathered = {160'000}};
  EXPECT_DOUBLE_EQ(predict(theirs, "topk:keep=0.01", 4, 10).step,
                   published::method_seconds(topk, training, 4, {50e-6, 10e9 / 8}));
}

TEST(Advice, BreaksEvenWhereItSays) {
  const Profile profile = example();
  for (const bool published : {false, true}) {
    const Case it{profile, profile.models[0], published};
    const Advice advice = advise(it, 4, 1);
    for (const MethodAdvice& method : advice.methods) {
      if (method.predicted.method == kPlain) continue;
      EXPECT_TRUE(method.wins);
      EXPECT_TRUE(method.wins_on_slowest);
      ASSERT_EQ(method.break_even.size(), 1u) << method.predicted.method;
      const double at = method.break_even[0];
      EXPECT_LT(predict(it, method.predicted.method, 4, 0.99 * at).step,
                0.99 * predict(it, kPlain, 4, 0.99 * at).step);
      EXPECT_GT(predict(it, method.predicted.method, 4, 1.01 * at).step,
                0.99 * predict(it, kPlain, 4, 1.01 * at).step);
    }
  }
}

TEST(Advice, KnowsWorkersAndMemory) {
  const Profile profile = example();
  const Case it{profile, profile.models[0]};
  const Advice advice = advise(it, 4, 1);
  const MethodAdvice &topk = advice.methods[1], &low_rank = advice.methods[2];
  EXPECT_EQ(topk.gathered_bytes, 4 * 160'000);
  EXPECT_EQ(topk.fits_up_to, 6);  // Of a megabyte.
  EXPECT_FALSE(low_rank.fits_up_to);
  EXPECT_EQ(low_rank.wins_up_to, kMostWorkers);
  ASSERT_TRUE(topk.wins_up_to);
  EXPECT_LT(predict(it, "topk:keep=0.01", *topk.wins_up_to, 1).step,
            0.99 * predict(it, kPlain, *topk.wins_up_to, 1).step);
  EXPECT_GE(predict(it, "topk:keep=0.01", *topk.wins_up_to + 1, 1).step,
            0.99 * predict(it, kPlain, *topk.wins_up_to + 1, 1).step);
}

TEST(Advice, OfManyPointsIsThatOfEach) {
  const Profile profile = example();
  const std::vector<int> workers{2, 7, 64};
  const std::vector<double> gbps{0.5, 3, 90};
  for (const bool published : {false, true}) {
    const Case it{profile, profile.models[0], published};
    const std::vector<Advice> all = advise(it, workers, gbps);
    ASSERT_EQ(all.size(), workers.size() * gbps.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Advice one = advise(it, workers[i / gbps.size()], gbps[i % gbps.size()]);
      EXPECT_EQ(all[i].workers, one.workers);
      EXPECT_EQ(all[i].gbps, one.gbps);
      EXPECT_EQ(all[i].verdict, one.verdict);
      EXPECT_EQ(all[i].best_method, one.best_method);
      EXPECT_EQ(all[i].needed_ratio, one.needed_ratio);
      ASSERT_EQ(all[i].methods.size(), one.methods.size());
      for (std::size_t m = 0; m < one.methods.size(); ++m) {
        const MethodAdvice &mine = all[i].methods[m], &alone = one.methods[m];
        EXPECT_EQ(mine.predicted.method, alone.predicted.method);
        EXPECT_EQ(mine.predicted.step, alone.predicted.step);
        EXPECT_EQ(mine.wins, alone.wins);
        EXPECT_EQ(mine.break_even, alone.break_even);
        EXPECT_EQ(mine.wins_up_to, alone.wins_up_to);
        EXPECT_EQ(mine.gathered_bytes, alone.gathered_bytes);
        EXPECT_EQ(mine.fits, alone.fits);
      }
    }
  }
}

// Near the break-even, where a method is a little faster and not worth it, all that is said of it agrees.
TEST(Advice, IsOfOneMind) {
  Profile profile = example();
  profile.models[0].codecs.pop_back();
  for (const bool published : {false, true}) {
    const Case it{profile, profile.models[0], published};
    const double turn = advise(it, 4, 1).methods[1].break_even.at(0);
    int within = 0;
    for (const double gbps : log_grid({0.9 * turn, 1.1 * turn}, 100)) {
      const Advice advice = advise(it, 4, gbps);
      const MethodAdvice& topk = advice.methods[1];
      const double plain = advice.plain().predicted.step, step = topk.predicted.step;
      within += step < plain && step >= 0.99 * plain;
      ASSERT_EQ(topk.break_even.size(), 1u);
      EXPECT_EQ(topk.wins, step < 0.99 * plain) << gbps;
      EXPECT_EQ(topk.wins, gbps < topk.break_even[0]) << gbps;
      EXPECT_TRUE(!topk.wins || topk.wins_up_to.value_or(0) >= 4) << gbps;
      EXPECT_EQ(topk.wins, advice.best().predicted.method == topk.predicted.method) << gbps;
      EXPECT_EQ(topk.wins, advice.verdict.starts_with("Compress")) << gbps;
      EXPECT_EQ(regimes(it, 4, {gbps, gbps * 1.0001}).front().best, advice.best().predicted.method) << gbps;
    }
    EXPECT_GT(within, 0);
  }
}

TEST(Advice, WhatDoesNotFitIsNotRecommended) {
  const Profile profile = example();
  Profile alone = profile;
  alone.models[0].codecs.pop_back();
  const Case it{alone, alone.models[0]};
  EXPECT_EQ(advise(it, 6, 0.5).best().predicted.method, "topk:keep=0.01");
  const Advice seven = advise(it, 7, 0.5);
  EXPECT_TRUE(seven.methods[1].wins);
  EXPECT_EQ(seven.best().predicted.method, kPlain);
  EXPECT_TRUE(seven.verdict.starts_with("Do not compress: at 0.5 Gbit/s plain DDP ")) << seven.verdict;
  EXPECT_TRUE(seven.verdict.ends_with(
      " TopK 1 % is faster, but its gathered messages fit into memory only up to 6 workers."))
      << seven.verdict;
  EXPECT_EQ(regimes(it, 6, {0.1, 1}).front().best, "topk:keep=0.01");
  ASSERT_EQ(regimes(it, 7, {0.1, 1}).size(), 1u);
  EXPECT_EQ(regimes(it, 7, {0.1, 1}).front().best, kPlain);
  // Another method that fits takes its place.
  EXPECT_EQ(advise({profile, profile.models[0]}, 7, 0.5).best().predicted.method, "powersgd:approx-rank=4");
}

TEST(Advice, RatioForNearLinearScaling) {
  const Profile profile = example();
  for (const bool published : {false, true}) {
    const Case it{profile, profile.models[0], published};
    EXPECT_EQ(advise(it, 4, 1000).needed_ratio, 1);
    const auto ratio = advise(it, 4, 1).needed_ratio;
    ASSERT_TRUE(ratio);
    EXPECT_GT(*ratio, 2);
    EXPECT_LT(*ratio, advise(it, 4, 0.5).needed_ratio.value_or(1e9));
    EXPECT_FALSE(advise(it, 1000, 1).needed_ratio) << "latency alone is too much";
  }
}

TEST(Advice, VerdictIsASentence) {
  const Profile profile = example();
  const Case it{profile, profile.models[0]};
  EXPECT_TRUE(
      advise(it, 4, 1).verdict.starts_with("Compress with PowerSGD rank 4: at 1 Gbit/s a step takes "));
  EXPECT_NE(advise(it, 4, 1).verdict.find(" it no longer pays."), std::string::npos);
  const std::string fast = advise(it, 4, 500).verdict;
  EXPECT_TRUE(fast.starts_with("Do not compress: at 500 Gbit/s plain DDP ")) << fast;
  EXPECT_NE(fast.find(" PowerSGD rank 4 starts to win below "), std::string::npos) << fast;
}

TEST(Advice, OfAProfileWithoutCodecs) {
  Profile profile = example();
  profile.models[0].codecs.clear();
  EXPECT_TRUE(advise({profile, profile.models[0]}, 4, 1).verdict.starts_with("Do not compress: "));
}

TEST(Advice, MethodThatNeverWins) {
  Profile profile = example();
  profile.models[0].codecs = {{.codec = "atomo", .encode_ms = 1e6, .rounds = {{.bytes = 1000}}}};
  EXPECT_TRUE(advise({profile, profile.models[0]}, 4, 1)
                  .verdict.ends_with("No method of the profile wins at any bandwidth."));
}

TEST(Advice, RegimesCoverTheRange) {
  const Profile profile = example();
  const std::vector<Regime> all = regimes({profile, profile.models[0]}, 4, {0.1, 100});
  ASSERT_GE(all.size(), 2u);
  EXPECT_EQ(all.front().from_gbps, 0.1);
  EXPECT_EQ(all.back().to_gbps, 100);
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i].from_gbps, all[i - 1].to_gbps);
    EXPECT_NE(all[i].best, all[i - 1].best);
  }
  EXPECT_EQ(all.front().best, "powersgd:approx-rank=4");
  EXPECT_EQ(all.back().best, kPlain);
}

TEST(Advice, RefusesAMethodThatTheProfileLacks) {
  const Profile profile = example();
  for (const bool published : {false, true})
    EXPECT_THROW(predict({profile, profile.models[0], published}, "powersgd", 4, 1), UsageError);
}

TEST(Spoken, AsPeopleSayIt) {
  EXPECT_EQ(spoken("powersgd:approx-rank=4"), "PowerSGD rank 4");
  EXPECT_EQ(spoken("topk:keep=0.01"), "TopK 1 %");
  EXPECT_EQ(spoken("topk:keep=0.01,feedback=false"), "TopK 1 %, feedback=false");
  EXPECT_EQ(spoken("qsgd:bits=2"), "QSGD 2 bit");
  EXPECT_EQ(spoken("none"), "plain DDP");
  EXPECT_EQ(spoken("mine:a=1"), "mine:a=1");
}

}  // namespace
}  // namespace accordion::perf
