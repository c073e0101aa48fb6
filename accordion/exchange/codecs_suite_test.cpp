// Every codec, over shapes and numbers of ranks: what must hold whatever the codec does.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "accordion/exchange/codecs_testing.h"
#include "accordion/exchange/forecast.h"

namespace accordion {
namespace {

using testing_codecs::kCompressAll;
using testing_codecs::noise;

struct Codec {
  std::string setting;
  bool conserves = true;    // What is not sent now is sent later.
  bool homogeneous = true;  // Twice the gradient, twice the mean.
  bool fixed = true;        // payload_bytes() is exact, not a bound,
  bool bounded = true;      // or not even that: an average.
};

const std::vector<Codec> kCodecs = {
    {"fp16:feedback=true"},
    {"bf16:feedback=true"},
    {"topk:keep=0.1"},
    {"topk:keep=0.6"},
    {"mstopk:keep=0.1"},
    {"randomk:keep=0.25"},
    {"randomk:keep=0.25,block=true"},
    {.setting = "dgc:keep=0.1,momentum=0,warmup=false", .fixed = false},
    {.setting = "sign-vote", .conserves = false, .homogeneous = false},
    {.setting = "sign-vote:count=true", .conserves = false, .homogeneous = false},
    {.setting = "sign-vote:chunked=true", .conserves = false, .homogeneous = false},
    {"sign-scaled"},
    {"sign-scaled:chunked=true"},
    {.setting = "qsgd:bits=2", .conserves = false},
    {.setting = "qsgd:bits=4,norm=l2", .conserves = false},
    {.setting = "qsgd:bits=8", .conserves = false},
    {.setting = "qsgd:bits=4,coding=elias", .conserves = false, .fixed = false},
    {.setting = "qsgd:bits=4,share-scale=true", .conserves = false},
    {.setting = "qsgd:bits=4,chunked=true", .conserves = false},
    {.setting = "terngrad", .conserves = false},
    {.setting = "terngrad:chunked=true", .conserves = false},
    {.setting = "terngrad:share-scale=true", .conserves = false},
    {"powersgd:approx-rank=1"},
    {"powersgd:approx-rank=3"},
    {.setting = "atomo:budget=2", .conserves = false, .fixed = false, .bounded = false},
    {.setting = "threshold:lambda=0.5", .homogeneous = false, .fixed = false},
};

const std::vector<std::vector<std::int64_t>> kShapes = {{0, 4}, {1, 1},       {31, 1},  {1, 32},  {33, 1},
                                                        {7, 3}, {5, 2, 3, 3}, {64, 65}, {300, 7}, {7, 300}};

// All shapes in one bucket, so that layers share buffers and collectives.
struct Bucket {
  std::vector<TensorInfo> tensors;
  std::vector<Slice> slices;
  std::size_t size = 0;

  Bucket() {
    for (const auto& dims : kShapes) {
      const Shape shape{dims};
      slices.push_back({static_cast<int>(tensors.size()), size, shape.count()});
      size += shape.count();
      tensors.push_back({"tensor" + std::to_string(tensors.size()), shape});
    }
    tensors.push_back({"bias", {{17}}});  // Goes dense.
    slices.push_back({static_cast<int>(tensors.size()) - 1, size, 17});
    size += 17;
  }
};

class Codecs : public ::testing::TestWithParam<Codec> {
 protected:
  ExchangeOptions options() const {
    return {.levels = {parse_codec(GetParam().setting), NoneOptions{}}, .routing = kCompressAll, .seed = 11};
  }
  Bucket bucket_;
};

TEST_P(Codecs, AgreeOnEveryRankAndRepeat) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    std::mutex mutex;
    std::vector<std::vector<float>> first;  // per step
    for (int run = 0; run < 2; ++run)
      run_loopback(ranks, [&](Communicator& comm) {
        Exchange exchange(comm, bucket_.tensors, options());
        for (unsigned step = 0; step < 3; ++step) {
          auto bucket = noise(bucket_.size, 100 * step + static_cast<unsigned>(comm.rank()));
          exchange.mean(bucket, bucket_.slices);
          ASSERT_TRUE(exchange.end_step());
          std::lock_guard lock(mutex);
          if (first.size() == step) first.push_back(bucket);
          ASSERT_EQ(first[step], bucket) << ranks << " ranks, step " << step;
          for (float value : bucket) ASSERT_TRUE(std::isfinite(value));
        }
      });
  }
}

// Summed over steps, and with what is owed sent at the end by a change to `none`, the means are those of the
// gradients.
TEST_P(Codecs, LoseNothingOverStepsAndALevelChange) {
  if (!GetParam().conserves) GTEST_SKIP() << "unbiased, or a direction only";
  for (int ranks = 1; ranks <= 4; ++ranks)
    run_loopback(ranks, [&](Communicator& comm) {
      Exchange exchange(comm, bucket_.tensors, options());
      std::vector<double> sent(bucket_.size), given(bucket_.size);
      for (unsigned step = 0; step < 6; ++step) {
        for (int r = 0; r < ranks; ++r) {
          const auto gradient = noise(bucket_.size, 100 * step + static_cast<unsigned>(r));
          for (std::size_t i = 0; i < gradient.size(); ++i)
            given[i] += gradient[i] / static_cast<double>(ranks);
        }
        auto bucket = noise(bucket_.size, 100 * step + static_cast<unsigned>(comm.rank()));
        if (step == 5) {
          exchange.set_levels(std::vector<int>(bucket_.tensors.size(), 1));
        }
        exchange.mean(bucket, bucket_.slices);
        exchange.end_step();
        for (std::size_t i = 0; i < bucket.size(); ++i) sent[i] += bucket[i];
      }
      double difference = 0, norm = 0;
      for (std::size_t i = 0; i < sent.size(); ++i) {
        difference += std::pow(sent[i] - given[i], 2);
        norm += std::pow(given[i], 2);
      }
      // 16-bit sums round once more than error feedback can see.
      const double tolerance = GetParam().setting.starts_with("fp16")   ? 1e-3
                               : GetParam().setting.starts_with("bf16") ? 1e-2
                                                                        : 1e-5;
      EXPECT_LT(std::sqrt(difference / norm), tolerance) << ranks;
    });
}

TEST_P(Codecs, SendNothingOfNothing) {
  for (int ranks : {1, 3})
    run_loopback(ranks, [&](Communicator& comm) {
      Exchange exchange(comm, bucket_.tensors, options());
      for (int step = 0; step < 2; ++step) {
        std::vector<float> bucket(bucket_.size, 0.0f);
        exchange.mean(bucket, bucket_.slices);
        EXPECT_TRUE(exchange.end_step());
        for (float value : bucket) ASSERT_EQ(value, 0.0f);
      }
    });
}

TEST_P(Codecs, ScaleWithTheGradient) {
  if (!GetParam().homogeneous) GTEST_SKIP() << "an absolute threshold, or unit steps";
  run_loopback(3, [&](Communicator& comm) {
    Exchange small(comm, bucket_.tensors, options()), large(comm, bucket_.tensors, options());
    for (unsigned step = 0; step < 3; ++step) {
      auto a = noise(bucket_.size, 100 * step + static_cast<unsigned>(comm.rank()));
      auto b = a;
      for (float& value : b) value *= 1024;
      small.mean(a, bucket_.slices);
      small.end_step();
      large.mean(b, bucket_.slices);
      large.end_step();
      // Two elements of TernGrad's statistics may round apart; everything else is exact in powers of two.
      // Half precision leaves its normal range for tiny values.
      for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(1024 * a[i], b[i], 1e-3f * std::abs(b[i]) + 1e-3f) << i;
    }
  });
}

TEST_P(Codecs, WeighWhatTheFormulaSays) {
  for (int ranks : {1, 2, 4})
    run_loopback(ranks, [&](Communicator& comm) {
      Exchange exchange(comm, bucket_.tensors, options());
      auto bucket = noise(bucket_.size, static_cast<unsigned>(comm.rank()));
      exchange.mean(bucket, bucket_.slices);
      exchange.end_step();
      std::size_t expected = 17 * sizeof(float);
      for (std::size_t i = 0; i + 1 < bucket_.tensors.size(); ++i)
        expected += payload_bytes(options().levels[0], bucket_.tensors[i].shape, ranks);
      const Traffic traffic = exchange.take_epoch_stats().traffic;
      if (GetParam().fixed)
        EXPECT_EQ(traffic.payload_bytes, expected) << ranks;
      else
        EXPECT_LE(traffic.payload_bytes, (GetParam().bounded ? 1 : 3) * expected) << ranks;
      EXPECT_EQ(traffic.wire_bytes == 0, ranks == 1);
    });
}

TEST_P(Codecs, SendWhatWasForecast) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    const StepForecast forecast(bucket_.tensors, options(), ranks, 1);
    const TallyRange range = forecast.step(std::vector<int>(bucket_.tensors.size(), 0), 0);
    EXPECT_EQ(range.exact(), GetParam().fixed);
    constexpr int kSteps = 3;
    Traffic traffic;
    run_loopback(ranks, [&](Communicator& comm) {
      Exchange exchange(comm, bucket_.tensors, options());
      for (unsigned step = 0; step < kSteps; ++step) {
        auto bucket = noise(bucket_.size, 100 * step + static_cast<unsigned>(comm.rank()));
        exchange.mean(bucket, bucket_.slices);
        exchange.end_step();
      }
      if (comm.rank() == 0) traffic = exchange.take_epoch_stats().traffic;
    });
    const Tally least = range.least.times(kSteps), most = range.most.times(kSteps);
    EXPECT_GE(traffic.payload_bytes, least.payload_bytes) << ranks;
    EXPECT_LE(traffic.payload_bytes, most.payload_bytes) << ranks;
    EXPECT_GE(traffic.wire_bytes, least.wire_bytes(ranks)) << ranks;
    EXPECT_LE(traffic.wire_bytes, most.wire_bytes(ranks)) << ranks;
    EXPECT_GE(traffic.paper_floats, least.paper_floats) << ranks;
    EXPECT_LE(traffic.paper_floats, most.paper_floats) << ranks;
  }
}

TEST_P(Codecs, DropAStepThatIsNotFiniteAnywhere) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()})
    run_loopback(3, [&](Communicator& comm) {
      Exchange exchange(comm, bucket_.tensors, options());
      for (unsigned step = 0; step < 4; ++step) {
        auto bucket = noise(bucket_.size, 100 * step + static_cast<unsigned>(comm.rank()));
        if (step == 1 && comm.rank() == 1) bucket[bucket_.slices[7].offset + 1234] = bad;
        exchange.mean(bucket, bucket_.slices);
        EXPECT_EQ(exchange.end_step(), step != 1);
        for (float value : bucket) ASSERT_TRUE(step == 1 || std::isfinite(value)) << "step " << step;
      }
      EXPECT_EQ(exchange.take_epoch_stats().dropped_steps, 1);
    });
}

// A huge or tiny gradient overflows nothing on the way.
TEST_P(Codecs, SurviveExtremeMagnitudes) {
  for (const float scale : {1e-40f, 1e-20f, 1e15f})
    run_loopback(2, [&](Communicator& comm) {
      Exchange exchange(comm, bucket_.tensors, options());
      for (unsigned step = 0; step < 3; ++step) {
        auto bucket = noise(bucket_.size, 10 * step + static_cast<unsigned>(comm.rank()), scale);
        exchange.mean(bucket, bucket_.slices);
        EXPECT_TRUE(exchange.end_step()) << scale;
        for (float value : bucket) ASSERT_TRUE(std::isfinite(value)) << scale;
      }
    });
}

INSTANTIATE_TEST_SUITE_P(All, Codecs, ::testing::ValuesIn(kCodecs), [](const auto& info) {
  std::string name = info.param.setting;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// At its lossless setting a codec gives the mean itself.
TEST(LosslessCodecs, GiveTheMean) {
  const Bucket all;
  for (const auto& [setting, tolerance] : {std::pair{"none", 0.0},
                                           {"topk:keep=1", 1e-6},
                                           {"randomk:keep=1", 1e-6},
                                           {"powersgd:approx-rank=64", 1e-4},
                                           {"threshold:lambda=1e-30", 1e-6},
                                           {"atomo:budget=64", 1e-4}})
    run_loopback(3, [&, setting = setting, tolerance = tolerance](Communicator& comm) {
      Exchange exact(comm, all.tensors, {}),
          coded(comm, all.tensors, {.levels = {parse_codec(setting)}, .routing = kCompressAll});
      auto a = noise(all.size, static_cast<unsigned>(comm.rank())), b = a;
      exact.mean(a, all.slices);
      exact.end_step();
      coded.mean(b, all.slices);
      coded.end_step();
      for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(a[i]))) << setting << " at " << i;
    });
}

// The mean of many draws is the mean of the gradients, within six of its own deviations.
TEST(UnbiasedCodecs, AreRightOnAverage) {
  const std::vector<TensorInfo> tensors = {{"w", {{12, 9}}}};
  const std::vector<Slice> slices = {{0, 0, 108}};
  for (const char* setting : {"qsgd:bits=2,block=32", "qsgd:bits=4", "qsgd:bits=4,coding=elias,norm=l2",
                              "qsgd:bits=4,share-scale=true", "qsgd:bits=4,chunked=true", "terngrad:clip=0",
                              "terngrad:clip=0,chunked=true", "terngrad:clip=0,share-scale=true",
                              "randomk:keep=0.25,feedback=false", "atomo:budget=2"})
    run_loopback(2, [&](Communicator& comm) {
      constexpr int kDraws = 4000;
      Exchange exchange(comm, tensors,
                        {.levels = {parse_codec(setting)}, .routing = kCompressAll, .seed = 3});
      std::vector<double> sum(108), squares(108);
      for (int draw = 0; draw < kDraws; ++draw) {
        auto gradient = noise(108, static_cast<unsigned>(comm.rank()));
        exchange.mean(gradient, slices);
        exchange.end_step();
        for (std::size_t i = 0; i < 108; ++i) {
          sum[i] += gradient[i];
          squares[i] += static_cast<double>(gradient[i]) * gradient[i];
        }
      }
      const auto g0 = noise(108, 0), g1 = noise(108, 1);
      for (std::size_t i = 0; i < 108; ++i) {
        const double mean = sum[i] / kDraws, expected = (g0[i] + g1[i]) / 2;
        const double deviation = std::sqrt(std::max(0.0, squares[i] / kDraws - mean * mean));
        EXPECT_NEAR(mean, expected, 6 * deviation / std::sqrt(kDraws) + 1e-3 * std::abs(expected) + 1e-6)
            << setting << " at " << i;
      }
    });
}

}  // namespace
}  // namespace accordion
