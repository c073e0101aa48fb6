// Every codec, over shapes and numbers of ranks: what must hold whatever the codec does.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <mutex>

#include "accordion/compress/codec_cases_testing.h"
#include "accordion/compress/local_group.h"
#include "accordion/exchange/codecs_testing.h"
#include "accordion/exchange/forecast.h"

namespace accordion {
namespace {

using testing_codecs::codec_entries;
using testing_codecs::CodecCase;
using testing_codecs::CodecEntry;
using testing_codecs::EveryShape;
using testing_codecs::kCompressAll;
using testing_codecs::noise;
using testing_codecs::Promise;

struct Codec {
  CodecEntry entry;
  CodecCase own;
};

std::vector<Codec> all_cases() {
  std::vector<Codec> all;
  for (const CodecEntry& entry : codec_entries())
    for (const CodecCase& own : entry.cases) all.push_back({entry, own});
  return all;
}

class Codecs : public ::testing::TestWithParam<Codec> {
 protected:
  ExchangeOptions options() const {
    return {
        .levels = {parse_codec(GetParam().own.setting), NoneOptions{}}, .routing = kCompressAll, .seed = 11};
  }
  EveryShape bucket_;
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
  if (GetParam().entry.promise != Promise::kConserves) GTEST_SKIP() << "unbiased, or a direction only";
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
      EXPECT_LT(std::sqrt(difference / norm), GetParam().entry.rounding) << ranks;
    });
}

// A group in one thread, as trials and benchmarks have it, does what the exchange does.
TEST_P(Codecs, DoTheSameWithoutANetwork) {
  const Shape shape{{64, 65}};
  for (int ranks = 1; ranks <= 3; ++ranks) {
    std::vector<std::unique_ptr<Compressor>> codecs;
    std::vector<std::vector<float>> gradients, residuals, next, means;
    for (int rank = 0; rank < ranks; ++rank) {
      codecs.push_back(make_compressor(options().levels[0], shape, ranks, kCompressAll));
      gradients.push_back(noise(shape.count(), static_cast<unsigned>(rank)));
      residuals.emplace_back(codecs.back()->wants_feedback() ? shape.count() : 0);
    }
    next = residuals;
    means.assign(gradients.size(), std::vector<float>(shape.count()));
    std::vector<LocalRank> group;
    for (std::size_t r = 0; r < gradients.size(); ++r)
      group.push_back({*codecs[r],
                       {.seed = 11, .rank = static_cast<int>(r), .world = ranks},
                       {gradients[r], residuals[r], next[r]},
                       means[r]});
    run_step(group);
    run_loopback(ranks, [&](Communicator& comm) {
      Exchange exchange(comm, {{"w", shape}}, options());
      auto gradient = noise(shape.count(), static_cast<unsigned>(comm.rank()));
      exchange.mean(gradient, std::vector<Slice>{{0, 0, shape.count()}});
      ASSERT_TRUE(exchange.end_step());
      EXPECT_EQ(gradient, means[static_cast<std::size_t>(comm.rank())]) << ranks << " ranks";
      State state;
      exchange.save_state(StateWriter(state));
      EXPECT_EQ(std::get<std::vector<float>>(state.at("w/residual")),
                next[static_cast<std::size_t>(comm.rank())]);
    });
  }
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
  if (!GetParam().entry.homogeneous) GTEST_SKIP() << "an absolute threshold, or unit steps";
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
      if (GetParam().own.fixed)
        EXPECT_EQ(traffic.payload_bytes, expected) << ranks;
      else
        EXPECT_LE(traffic.payload_bytes, (GetParam().own.bounded ? 1 : 3) * expected) << ranks;
      EXPECT_EQ(traffic.wire_bytes == 0, ranks == 1);
    });
}

TEST_P(Codecs, SendWhatWasForecast) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    const StepForecast forecast(bucket_.tensors, options(), ranks, 1);
    const TallyRange range = forecast.step(std::vector<int>(bucket_.tensors.size(), 0), 0);
    EXPECT_EQ(range.exact(), GetParam().own.fixed);
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

INSTANTIATE_TEST_SUITE_P(All, Codecs, ::testing::ValuesIn(all_cases()), [](const auto& info) {
  std::string name = info.param.own.setting;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// A codec without an entry would not be tested at all.
TEST(Codecs, AreAllInTheList) {
  for (const std::string& name : codec_names())
    EXPECT_EQ(testing_codecs::entry_of(name).name, name)
        << "compress/codec_cases_testing.h has no entry of it";
}

}  // namespace
}  // namespace accordion
