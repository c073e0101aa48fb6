// Gradients of 16 bits, and gradients that carry a loss scale: what is exchanged and what is kept is the same.
#include <gtest/gtest.h>

#include <cmath>
#include <future>

#include "accordion/base/noise_testing.h"
#include "accordion/comm/loopback.h"
#include "accordion/engine/engine.h"

namespace accordion {
namespace {

using Floats = std::vector<float>;
using Bits = std::vector<std::uint16_t>;

const std::vector<TensorInfo> kTensors = {{"a", {{40, 30}}}, {"b", {{50, 40}}}, {"c", {{9}}}};
constexpr std::size_t kCount = 1200 + 2000 + 9;

std::vector<Slice> slices() {
  return {{0, 0, 1200}, {1, 1200, 2000}, {2, 3200, 9}};
}

void run_step(Engine& engine, Values values) {
  std::promise<void> done;
  engine.post({.values = values, .slices = slices(), .last = true}, [&](const std::exception_ptr& failure) {
    failure ? done.set_exception(failure) : done.set_value();
  });
  done.get_future().get();
}

template <class Format>
struct Kind;
template <>
struct Kind<Half> {
  static constexpr std::uint16_t kInfinity = 0x7c00;
  static std::uint16_t narrow(float x) { return kernels::reference::to_half(x); }
  static float widen(std::uint16_t x) { return kernels::reference::from_half(x); }
};
template <>
struct Kind<Bfloat16> {
  static constexpr std::uint16_t kInfinity = 0x7f80;
  static std::uint16_t narrow(float x) { return kernels::reference::to_bfloat16(x); }
  static float widen(std::uint16_t x) { return kernels::reference::from_bfloat16(x); }
};

// Values that the format holds.
template <class Format>
Bits gradient(int rank, int step) {
  Bits bits;
  for (float value : noise(kCount, static_cast<unsigned>(10 * step + rank)))
    bits.push_back(Kind<Format>::narrow(value));
  return bits;
}

template <class Format>
Floats widened(const Bits& bits) {
  Floats floats;
  for (std::uint16_t value : bits) floats.push_back(Kind<Format>::widen(value));
  return floats;
}

template <class Format>
Values view(Bits& bits) {
  return std::span(reinterpret_cast<Format*>(bits.data()), bits.size());
}

template <class Format>
class SixteenBits : public testing::Test {};
using Formats = testing::Types<Half, Bfloat16>;
TYPED_TEST_SUITE(SixteenBits, Formats);

TYPED_TEST(SixteenBits, TravelAsSuchWhileDense) {
  run_loopback_groups(3, [](Group& group) {
    Engine engine(group, kTensors, {});
    engine.set_batch(group.rank() + 1, 6);
    Bits bits = gradient<TypeParam>(group.rank(), 0);
    run_step(engine, view<TypeParam>(bits));
    const Floats mean = widened<TypeParam>(bits);
    std::vector<double> expected(kCount);
    for (int rank = 0; rank < 3; ++rank) {
      const Floats theirs = widened<TypeParam>(gradient<TypeParam>(rank, 0));
      for (std::size_t i = 0; i < kCount; ++i) expected[i] += (rank + 1) * theirs[i] / 6;
    }
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_NEAR(mean[i], expected[i], 0.02);
    EXPECT_EQ(engine.end_epoch(0.1).stats.traffic.payload_bytes, 2 * kCount);
  });
}

TYPED_TEST(SixteenBits, AreCompressedInSinglePrecision) {
  for (const char* codec : {"topk:keep=0.05", "powersgd:approx-rank=2", "qsgd:bits=4"})
    run_loopback_groups(2, [&](Group& group) {
      const EngineOptions options{.control = {.codec = codec}, .seed = 3};
      Engine engine(group, kTensors, options), wide(group, kTensors, options);
      for (int step = 0; step < 4; ++step) {
        Bits bits = gradient<TypeParam>(group.rank(), step);
        Floats floats = widened<TypeParam>(bits);
        run_step(engine, view<TypeParam>(bits));
        run_step(wide, std::span(floats));
        Bits expected;
        for (float value : floats) expected.push_back(Kind<TypeParam>::narrow(value));
        EXPECT_EQ(bits, expected) << codec << " step " << step;
      }
    });
}

// What a codec still owes goes out with the first dense gradients.
TYPED_TEST(SixteenBits, ADenseLevelPaysWhatIsOwed) {
  run_loopback_groups(2, [](Group& group) {
    Engine engine(
        group, kTensors,
        {.control = {
             .controller = "schedule", .mild = "none", .strong = "topk:keep=0.05", .plan = "inverse"}});
    engine.exchange().set_levels(std::vector<int>{1, 1, 1});
    Bits first = gradient<TypeParam>(group.rank(), 0), second(kCount);
    run_step(engine, view<TypeParam>(first));
    engine.exchange().set_levels(std::vector<int>{0, 0, 0});
    run_step(engine, view<TypeParam>(second));
    const Floats sent = widened<TypeParam>(first), paid = widened<TypeParam>(second);
    const Floats one = widened<TypeParam>(gradient<TypeParam>(0, 0)),
                 other = widened<TypeParam>(gradient<TypeParam>(1, 0));
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_NEAR(sent[i] + paid[i], (one[i] + other[i]) / 2, 0.03);
  });
}

TYPED_TEST(SixteenBits, WhatIsNotFiniteReachesEveryone) {
  for (const char* codec : {"none", "topk:keep=0.05"})
    run_loopback_groups(2, [&](Group& group) {
      Engine engine(group, kTensors, {.control = {.codec = codec}});
      Bits bits = gradient<TypeParam>(group.rank(), 0);
      if (group.rank() == 1) bits[1300] = Kind<TypeParam>::kInfinity;
      run_step(engine, view<TypeParam>(bits));
      EXPECT_FALSE(std::isfinite(widened<TypeParam>(bits)[1300])) << codec;
      Bits good = gradient<TypeParam>(group.rank(), 1);
      run_step(engine, view<TypeParam>(good));
      for (float value : widened<TypeParam>(good)) ASSERT_TRUE(std::isfinite(value)) << codec;
    });
}

// Dense or not: a step that is skipped is zero on every rank, to its last value, and leaves nothing behind.
TYPED_TEST(SixteenBits, AStepThatIsSkippedIsZero) {
  for (const char* codec : {"none", "topk:keep=0.05"})
    run_loopback_groups(2, [&](Group& group) {
      Engine engine(group, kTensors,
                    {.control = {.codec = codec}, .communication = {.on_non_finite = NonFinite::kSkip}});
      Bits bits = gradient<TypeParam>(group.rank(), 0);
      if (group.rank() == 1) bits[1300] = Kind<TypeParam>::kInfinity;
      run_step(engine, view<TypeParam>(bits));
      EXPECT_EQ(bits, Bits(kCount)) << codec;
      EXPECT_FALSE(engine.last_step_kept()) << codec;
    });
}

// The norm of the mean is without its scale, whatever it travels as.
TYPED_TEST(SixteenBits, AreWatchedWithoutTheirScale) {
  for (const char* mild : {"none", "topk:keep=1"})
    run_loopback_groups(2, [&](Group& group) {
      Engine engine(
          group, kTensors,
          {.control = {
               .controller = "accordion", .mild = mild, .strong = "topk:keep=0.02", .norms = "aggregated"}});
      engine.set_scale(8);
      Bits bits = gradient<TypeParam>(0, 0);  // The same on both ranks, and so their mean.
      run_step(engine, view<TypeParam>(bits));
      double squares = 0;
      const Floats mean = widened<TypeParam>(bits);
      for (std::size_t i = 0; i < 1200; ++i) squares += static_cast<double>(mean[i]) * mean[i] / 64;
      const EpochReport report = engine.end_epoch(0.1);
      if (group.rank() > 0) return;
      EXPECT_NEAR(report.layers.at(0).norm, std::sqrt(squares), 0.02 * std::sqrt(squares)) << mild;
    });
}

// What was owed twice over is beyond the range, whether it is sent by a codec or by none.
TEST(Halves, CountWhatTheyCannotHold) {
  for (const int level : {0, 1})
    run_loopback_groups(1, [&](Group& group) {
      Engine engine(
          group, kTensors,
          {.control = {
               .controller = "schedule", .mild = "none", .strong = "topk:keep=0.001", .plan = "inverse"}});
      engine.exchange().set_levels(std::vector<int>{1, 1, 1});
      Bits first(kCount), second(kCount);
      first[3] = Kind<Half>::narrow(60000);  // Sent,
      first[7] = Kind<Half>::narrow(50000);  // and owed.
      run_step(engine, view<Half>(first));
      EXPECT_EQ(engine.epoch_stats().traffic.saturated, 0u);
      engine.exchange().set_levels(std::vector<int>{level, level, level});
      second[7] = Kind<Half>::narrow(50000);
      run_step(engine, view<Half>(second));
      EXPECT_EQ(widened<Half>(second)[7], 65504) << level;
      EXPECT_EQ(engine.epoch_stats().traffic.saturated, 1u) << level;
    });
}

std::vector<double> doubles(int rank, double scale = 1) {
  const Floats floats = noise(kCount, static_cast<unsigned>(rank));
  std::vector<double> values(floats.begin(), floats.end());
  for (double& value : values) value *= scale;
  return values;
}

TEST(Doubles, CarryAScaleAndALimit) {
  run_loopback_groups(2, [](Group& group) {
    for (const double limit : {0.0, 2.0}) {
      const EngineOptions options{.communication = {.clip_norm = limit}, .record_norms = true};
      Engine plain(group, kTensors, options), scaled(group, kTensors, options);
      scaled.set_scale(1024);
      auto a = doubles(group.rank()), b = doubles(group.rank(), 1024);
      run_step(plain, std::span(a));
      run_step(scaled, std::span(b));
      for (double& value : b) value /= 1024;
      EXPECT_EQ(a, b) << limit;
      double factors[2];
      for (int rank = 0; rank < 2; ++rank) {
        double squares = 0;
        for (double value : doubles(rank)) squares += value * value;
        factors[rank] = limit > 0 ? limit / std::sqrt(squares) : 1;
      }
      const auto one = doubles(0), other = doubles(1);
      for (std::size_t i = 0; i < kCount; ++i)
        ASSERT_NEAR(a[i], (factors[0] * one[i] + factors[1] * other[i]) / 2, 1e-12) << limit;
      const EpochReport without = plain.end_epoch(0.1), with = scaled.end_epoch(0.1);
      for (std::size_t i = 0; i < without.layers.size(); ++i)
        EXPECT_EQ(without.layers[i].norm, with.layers[i].norm);
    }
  });
}

TEST(Doubles, AStepThatIsNotFiniteIsWhatItIsToldToBe) {
  for (const NonFinite what : {NonFinite::kPropagate, NonFinite::kSkip})
    run_loopback_groups(2, [&](Group& group) {
      Engine engine(group, kTensors, {.communication = {.on_non_finite = what}, .scaled = true});
      auto values = doubles(group.rank());
      if (group.rank() == 1) values[5] = std::numeric_limits<double>::infinity();
      run_step(engine, std::span(values));
      EXPECT_FALSE(engine.last_step_kept());
      for (double value : values) ASSERT_TRUE(what == NonFinite::kSkip ? value == 0 : std::isnan(value));
    });
}

// The norm of a step is limited whatever its type, and without its scale.
TYPED_TEST(SixteenBits, ClipsTheNorm) {
  run_loopback_groups(1, [](Group& group) {
    Engine engine(group, kTensors, {.communication = {.clip_norm = 2}});
    engine.set_scale(8);
    Bits bits = gradient<TypeParam>(0, 0);
    run_step(engine, view<TypeParam>(bits));
    double squares = 0;
    for (float value : widened<TypeParam>(bits)) squares += static_cast<double>(value) * value / 64;
    EXPECT_NEAR(std::sqrt(squares), 2, 0.02);
  });
}

TEST(Scale, ChangesNothingThatIsKept) {
  for (const char* codec : {"none", "topk:keep=0.05", "powersgd:approx-rank=2", "sign-scaled"})
    run_loopback_groups(2, [&](Group& group) {
      const EngineOptions options{
          .control = {.codec = codec}, .seed = 3, .record_norms = true, .scaled = true};
      Engine plain(group, kTensors, options), scaled(group, kTensors, options);
      const float scales[] = {1024, 1024, 2, 65536, 0.5f};
      for (int step = 0; step < 5; ++step) {
        Floats a = noise(kCount, static_cast<unsigned>(10 * step + group.rank())), b = a;
        for (float& value : b) value *= scales[step];
        scaled.set_scale(scales[step]);
        run_step(plain, std::span(a));
        run_step(scaled, std::span(b));
        for (float& value : b) value /= scales[step];
        EXPECT_EQ(a, b) << codec << " step " << step;
      }
      const EpochReport one = plain.end_epoch(0.1), other = scaled.end_epoch(0.1);
      for (std::size_t i = 0; i < one.layers.size(); ++i) EXPECT_EQ(one.layers[i].norm, other.layers[i].norm);
      EXPECT_THROW(scaled.set_scale(0), UsageError);
      EXPECT_THROW(scaled.set_scale(std::nan("")), UsageError);
    });
}

// Momentum that a codec keeps is of this rank's gradients, as what it owes is.
TEST(DroppedResiduals, TakeTheirMomentumWithThem) {
  const EngineOptions options{.control = {.codec = "dgc:keep=0.05"}};
  run_loopback_groups(1, [&](Group& group) {
    Engine engine(group, kTensors, options), other(group, kTensors, options);
    Floats values = noise(kCount, 1);
    run_step(engine, std::span(values));
    State state, dropped;
    engine.save_state(StateWriter(state));
    EXPECT_NE(std::get<Floats>(state.at("exchange/a/momentum")), Floats(1200));
    other.load_state(StateReader(state), Residuals::kDrop);
    other.save_state(StateWriter(dropped));
    EXPECT_EQ(std::get<Floats>(dropped.at("exchange/a/momentum")), Floats(1200));
  });
}

// What a rank is owed is its own; the rest another rank, and another number of ranks, can go on with.
TEST(DroppedResiduals, EveryRankGoesOnFromRankZero) {
  const EngineOptions options{.control = {.controller = "accordion",
                                          .mild = "powersgd:approx-rank=4",
                                          .strong = "powersgd:approx-rank=1",
                                          .interval = 1},
                              .learning_rate = 0.1};
  State state;
  run_loopback_groups(2, [&](Group& group) {
    Engine engine(group, kTensors, options);
    for (int epoch = 0; epoch < 2; ++epoch) {
      Floats values = noise(kCount, static_cast<unsigned>(group.rank()));
      run_step(engine, std::span(values));
      engine.end_epoch(0.1);
    }
    if (group.rank() == 0) engine.save_state(StateWriter(state));
  });
  run_loopback_groups(3, [&](Group& group) {
    Engine engine(group, kTensors, options);
    EXPECT_THROW(engine.load_state(StateReader(state)), StateOfAnotherRank);
  });
  run_loopback_groups(3, [&](Group& group) {
    Engine engine(group, kTensors, options);
    engine.load_state(StateReader(state), Residuals::kDrop);
    EXPECT_EQ(engine.level(0), 1) << "the level that was decided";
    State own;
    engine.save_state(StateWriter(own));
    EXPECT_TRUE(std::get<Floats>(own.at("exchange/a/residual")).empty());
    EXPECT_EQ(own.at("exchange/a/q"), state.at("exchange/a/q"));
    Floats values = noise(kCount, static_cast<unsigned>(group.rank()));
    run_step(engine, std::span(values));
    EXPECT_EQ(engine.end_epoch(0.1).epoch, 2);
  });
}

}  // namespace
}  // namespace accordion
