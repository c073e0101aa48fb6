// Chunks, threads, the published behaviour, and state that is saved and loaded.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "accordion/base/error.h"
#include "accordion/comm/loopback.h"
#include "accordion/exchange/codecs_testing.h"
#include "accordion/exchange/exchange.h"

namespace accordion {
namespace {

using testing_codecs::Floats;
using testing_codecs::kCompressAll;
using testing_codecs::noise;

const std::vector<TensorInfo> kTensors = {
    {"a", {{40, 50}}}, {"b", {{3, 5}}}, {"c", {{7, 3, 3, 3}}}, {"bias", {{9}}}};

std::vector<Slice> slices() {
  std::vector<Slice> result;
  std::size_t offset = 0;
  for (const TensorInfo& tensor : kTensors) {
    result.push_back({static_cast<int>(result.size()), offset, tensor.shape.count()});
    offset += tensor.shape.count();
  }
  return result;
}

const std::vector<Slice> kSlices = slices();
const std::size_t kSize = kSlices.back().offset + kSlices.back().count;

unsigned seed_of(int step, int rank) {
  return static_cast<unsigned>(100 * step + rank);
}

struct Traced {
  std::vector<Floats> means;  // per step
  Traffic traffic;            // of rank 0
};

Traced traced(int ranks, const ExchangeOptions& options, int steps) {
  Traced result;
  std::mutex mutex;
  run_loopback(ranks, [&](Communicator& comm) {
    Exchange exchange(comm, kTensors, options);
    std::vector<Floats> means;
    for (int step = 0; step < steps; ++step) {
      means.push_back(noise(kSize, seed_of(step, comm.rank())));
      exchange.mean(means.back(), kSlices);
      EXPECT_TRUE(exchange.end_step());
    }
    std::lock_guard lock(mutex);
    if (result.means.empty()) result.means = means;
    EXPECT_EQ(result.means, means) << "ranks differ";
    if (comm.rank() == 0) result.traffic = exchange.take_epoch_stats().traffic;
  });
  return result;
}

ExchangeOptions with(const char* setting) {
  return {.levels = {parse_codec(setting)}, .routing = kCompressAll, .seed = 5};
}

TEST(Votes, AreTheSameHoweverTheyAreCounted) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    const Traced gathered = traced(ranks, with("sign-vote"), 3);
    EXPECT_EQ(traced(ranks, with("sign-vote:count=true"), 3).means, gathered.means) << ranks;
    EXPECT_EQ(traced(ranks, with("sign-vote:chunked=true"), 3).means, gathered.means) << ranks;
  }
}

// What travels through a rank stays within twice one message, while a gather's grows with the ranks.
TEST(Chunks, KeepTheWireFlat) {
  const std::vector<TensorInfo> tensors = {{"w", {{512, 640}}}};
  const std::vector<Slice> all = {{0, 0, 512 * 640}};
  for (const char* codec : {"qsgd:bits=4", "terngrad", "sign-scaled"}) {
    const auto wire = [&](int ranks, const std::string& setting) {
      std::uint64_t bytes = 0;
      run_loopback(ranks, [&](Communicator& comm) {
        Exchange exchange(comm, tensors, with(setting.c_str()));
        auto gradient = noise(512 * 640, static_cast<unsigned>(comm.rank()));
        exchange.mean(gradient, all);
        exchange.end_step();
        if (comm.rank() == 0) bytes = exchange.take_epoch_stats().traffic.wire_bytes;
      });
      return static_cast<double>(bytes);
    };
    const std::string chunked =
        std::string(codec) + (std::string(codec).find(':') == std::string::npos ? ":" : ",") + "chunked=true";
    const auto message = static_cast<double>(payload_bytes(parse_codec(codec), tensors[0].shape, 4));
    for (int ranks : {2, 4, 5}) {
      EXPECT_LT(wire(ranks, chunked), 1.02 * 2 * message * (ranks - 1) / ranks + 64 * ranks)
          << chunked << ranks;
      EXPECT_GT(wire(ranks, codec), message * (ranks - 1));
    }
  }
}

TEST(Chunks, RefuseAResultThatIsCutShort) {
  const Shape shape{{40, 50}};
  for (const char* setting :
       {"qsgd:bits=4,chunked=true", "sign-scaled:chunked=true", "terngrad:chunked=true"}) {
    const auto codec = make_compressor(parse_codec(setting), shape, 2, kCompressAll);
    const Context context{.rank = 0, .world = 2};
    const std::vector<std::byte> whole(codec->round(1, context).max_bytes);
    Floats mean(shape.count());
    std::vector<Message> messages = {{.payload = whole}, {.payload = whole}};
    EXPECT_NO_THROW(codec->decode(1, context, messages, mean)) << setting;
    messages[0].payload = std::span(whole).first(whole.size() - 1);
    EXPECT_THROW(codec->decode(1, context, messages, mean), Error) << setting;
  }
}

double relative_error(const Floats& exact, const Floats& coded) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    error += std::pow(exact[i] - coded[i], 2);
    norm += std::pow(exact[i], 2);
  }
  return std::sqrt(error / norm);
}

// The second encoding errs about as much as the first.
TEST(Chunks, OfAQuantiserStayCloseToTheMean) {
  for (int ranks : {1, 2, 4}) {
    const Floats exact = traced(ranks, {}, 1).means[0];
    const double once = relative_error(exact, traced(ranks, with("qsgd:bits=8"), 1).means[0]);
    const double twice = relative_error(exact, traced(ranks, with("qsgd:bits=8,chunked=true"), 1).means[0]);
    EXPECT_GT(twice, 0.8 * once) << ranks;
    EXPECT_LT(twice, 3 * once) << ranks;
  }
}

TEST(Threads, ChangeNothing) {
  for (const char* setting :
       {"topk:keep=0.05", "threshold:lambda=0.5", "powersgd:approx-rank=2", "qsgd:bits=4",
        "sign-scaled:chunked=true", "terngrad:share-scale=true", "fp16"}) {
    ExchangeOptions options = with(setting);
    const Traced one = traced(3, options, 3);
    options.threads = 3;
    const Traced three = traced(3, options, 3);
    EXPECT_EQ(one.means, three.means) << setting;
    EXPECT_EQ(one.traffic.wire_bytes, three.traffic.wire_bytes) << setting;
  }
}

TEST(Published, TopKAddsUpAndForgets) {
  ExchangeOptions options = with("topk:keep=0.3");
  options.published = true;
  constexpr int kRanks = 4;
  const Traced coded = traced(kRanks, options, 2);
  for (int step = 0; step < 2; ++step) {
    Floats expected(kSize);
    for (int rank = 0; rank < kRanks; ++rank) {
      const Floats gradient = noise(kSize, seed_of(step, rank));
      for (const Slice& slice : kSlices) {
        Floats sizes;
        for (std::size_t i = 0; i < slice.count; ++i) sizes.push_back(std::abs(gradient[slice.offset + i]));
        std::sort(sizes.rbegin(), sizes.rend());
        const bool dense = slice.tensor == 3;
        const float least =
            dense ? 0 : sizes[static_cast<std::size_t>(0.3 * static_cast<double>(slice.count)) - 1];
        for (std::size_t i = slice.offset; i < slice.offset + slice.count; ++i)
          if (std::abs(gradient[i]) >= least) expected[i] += dense ? gradient[i] / kRanks : gradient[i];
      }
    }
    for (std::size_t i = 0; i < kSize; ++i)
      ASSERT_NEAR(coded.means[static_cast<std::size_t>(step)][i], expected[i],
                  1e-5f * (1 + std::abs(expected[i])));
  }
  // Two floats for each entry, from each rank: 600 + 4 + 56 of the three matrices.
  EXPECT_EQ(coded.traffic.paper_floats, 2u * (2 * kRanks * (600 + 4 + 56) + 9));
}

// Ours sends what is owed when a layer turns dense; the published code drops it.
TEST(Published, DenseGradientsForgetWhatIsOwed) {
  for (const bool published : {false, true})
    run_loopback(2, [&](Communicator& comm) {
      ExchangeOptions options{.levels = {parse_codec("powersgd:approx-rank=1"), NoneOptions{}},
                              .published = published};
      Exchange exchange(comm, kTensors, options);
      auto gradient = noise(kSize, 1);
      exchange.mean(gradient, kSlices);
      exchange.end_step();
      exchange.set_levels(std::vector<int>(kTensors.size(), 1));
      Floats zeros(kSize);
      exchange.mean(zeros, kSlices);
      exchange.end_step();
      EXPECT_EQ(zeros == Floats(kSize), published);
    });
}

TEST(State, GoesOnWhereItWasSaved) {
  for (const char* setting :
       {"topk:keep=0.05", "powersgd:approx-rank=2", "dgc:keep=0.05", "sign-scaled:chunked=true",
        "qsgd:bits=4", "randomk:keep=0.1", "fp16:feedback=true"})
    run_loopback(3, [&](Communicator& comm) {
      const auto step = [&](Exchange& exchange, int number) {
        auto gradient = noise(kSize, seed_of(number, comm.rank()));
        exchange.mean(gradient, kSlices);
        exchange.end_step();
        return gradient;
      };
      Exchange first(comm, kTensors, with(setting));
      for (int i = 0; i < 3; ++i) step(first, i);
      State state;
      first.save_state(StateWriter(state));
      Exchange second(comm, kTensors, with(setting));
      second.load_state(StateReader(state));
      for (int i = 3; i < 6; ++i) ASSERT_EQ(step(first, i), step(second, i)) << setting << " at step " << i;
    });
}

// What was counted, collective by collective, goes on too.
TEST(State, CountsOnWhereItWasSaved) {
  ExchangeOptions options = with("threshold:lambda=0.5");
  options.levels.push_back(parse_codec("fp16"));
  run_loopback(3, [&](Communicator& comm) {
    Exchange first(comm, kTensors, options), second(comm, kTensors, options);
    first.set_levels(std::vector<int>{0, 1, 0, 0});
    second.set_levels(std::vector<int>{0, 1, 0, 0});
    const auto step = [&](Exchange& exchange, int number) {
      auto gradient = noise(kSize, seed_of(number, comm.rank()));
      gradient[kSlices[1].offset] = 1e9f;  // Beyond 16 bits.
      if (number == 1) gradient[0] = std::nanf("");
      exchange.mean(gradient, kSlices);
      exchange.end_step();
    };
    for (int i = 0; i < 3; ++i) step(first, i);
    State state;
    first.save_state(StateWriter(state));
    second.load_state(StateReader(state));
    for (Exchange* exchange : {&first, &second}) step(*exchange, 3);
    const EpochStats one = first.take_epoch_stats(), other = second.take_epoch_stats();
    EXPECT_EQ(one.steps, 4);
    EXPECT_EQ(one.dropped_steps, 1);
    EXPECT_GT(one.traffic.saturated, 0u);
    EXPECT_EQ(other.steps, one.steps);
    EXPECT_EQ(other.dropped_steps, one.dropped_steps);
    EXPECT_EQ(other.traffic, one.traffic);
  });
}

// A step without the layer, after one that was dropped, does not keep what the dropped one left.
TEST(State, OfADroppedStepIsNotKeptByTheNext) {
  for (const char* setting :
       {"topk:keep=0.05", "powersgd:approx-rank=2", "dgc:keep=0.05", "sign-scaled:chunked=true"})
    run_loopback(2, [&](Communicator& comm) {
      Exchange exchange(comm, kTensors, with(setting));
      auto gradient = noise(kSize, seed_of(0, comm.rank())), spoilt = noise(kSize, seed_of(1, comm.rank()));
      exchange.mean(gradient, kSlices);
      EXPECT_TRUE(exchange.end_step());
      State before, after;
      exchange.save_state(StateWriter(before));
      if (comm.rank() == 1) spoilt[kSize - 1] = spoilt[7] = std::nanf("");
      exchange.mean(spoilt, kSlices);
      EXPECT_FALSE(exchange.end_step());
      EXPECT_TRUE(exchange.end_step());
      exchange.save_state(StateWriter(after));
      before["step"] = after["step"];
      before["counts"] = after["counts"];
      EXPECT_EQ(before, after) << setting;
    });
}

// A level change right after loading finds what was owed where it belongs.
TEST(State, IsSettledByALevelChangeAfterLoading) {
  for (const char* setting : {"sign-scaled:chunked=true", "topk:keep=0.05"})
    run_loopback(3, [&](Communicator& comm) {
      ExchangeOptions options = with(setting);
      options.levels.push_back(NoneOptions{});
      Exchange first(comm, kTensors, options), second(comm, kTensors, options);
      for (int i = 0; i < 3; ++i) {
        auto gradient = noise(kSize, seed_of(i, comm.rank()));
        first.mean(gradient, kSlices);
        first.end_step();
      }
      State state;
      first.save_state(StateWriter(state));
      second.load_state(StateReader(state));
      Floats means[2] = {noise(kSize, seed_of(3, comm.rank())), noise(kSize, seed_of(3, comm.rank()))};
      Exchange* exchanges[] = {&first, &second};
      for (int i = 0; i < 2; ++i) {
        exchanges[i]->set_levels(std::vector<int>(kTensors.size(), 1));
        exchanges[i]->mean(means[i], kSlices);
        exchanges[i]->end_step();
      }
      EXPECT_EQ(means[0], means[1]) << setting;
    });
}

// A layer that a step leaves out keeps what its codec knew.
TEST(State, OutlivesAStepWithoutTheLayer) {
  for (const char* setting : {"powersgd:approx-rank=2", "dgc:keep=0.05", "sign-scaled:chunked=true"})
    run_loopback(2, [&](Communicator& comm) {
      Exchange first(comm, kTensors, with(setting)), second(comm, kTensors, with(setting));
      auto gradient = noise(kSize, seed_of(0, comm.rank()));
      first.mean(gradient, kSlices);
      first.end_step();
      State before, after;
      first.save_state(StateWriter(before));
      second.load_state(StateReader(before));
      EXPECT_TRUE(second.end_step());
      second.save_state(StateWriter(after));
      before["step"] = std::vector<std::int64_t>{2};
      before["counts"] = after["counts"];  // Of two steps.
      EXPECT_EQ(before, after) << setting;
    });
}

TEST(State, OfAnotherModelIsRefused) {
  run_loopback(1, [](Communicator& comm) {
    const std::vector<TensorInfo> one = {{"a", {{8, 4}}}}, two = {{"a", {{8, 4}}}, {"b", {{8, 4}}}};
    Exchange small(comm, one, with("powersgd")), large(comm, two, with("powersgd"));
    State of_small, of_large;
    small.save_state(StateWriter(of_small));
    large.save_state(StateWriter(of_large));
    const auto error = [](Exchange& exchange, const State& state) -> std::string {
      try {
        exchange.load_state(StateReader(state));
      } catch (const Error& refused) {
        return refused.what();
      }
      return "";
    };
    EXPECT_EQ(error(large, of_small), "state: b/residual is missing");
    EXPECT_EQ(error(small, of_large), "state: b/q belongs to nothing here");
    EXPECT_EQ(error(small, of_small), "");
    of_small["a/residual"] = std::vector<float>(31);
    EXPECT_EQ(error(small, of_small), "a: a residual of 31 values, expected 32");
  });
}

// Every hundredth entry is 1. Clipped once, it arrives as 2.5 deviations of the gradient; the mean that a
// chunk's owner sends on holds nothing larger.
TEST(Chunked, TernGradClipsOnce) {
  const std::vector<TensorInfo> tensors = {{"w", {{100, 100}}}};
  const std::vector<Slice> slices = {{0, 0, 10000}};
  run_loopback(2, [&](Communicator& comm) {
    for (const char* setting : {"terngrad", "terngrad:chunked=true"}) {
      Exchange exchange(comm, tensors, with(setting));
      Floats gradient(10000);
      for (std::size_t i = 0; i < gradient.size(); i += 100) gradient[i] = 1;
      exchange.mean(gradient, slices);
      EXPECT_TRUE(exchange.end_step());
      for (std::size_t i = 0; i < gradient.size(); ++i)
        ASSERT_NEAR(gradient[i], i % 100 == 0 ? 0.2487f : 0.0f, 0.002f) << setting << " at " << i;
    }
  });
}

// What a format of 16 bits cannot hold is counted as that, and not as entries of a sparse message.
TEST(SixteenBits, CountWhatTheyCannotHold) {
  for (const auto& [setting, expected] : {std::pair{"fp16", 3u}, {"bf16", 1u}, {"topk", 0u}})
    run_loopback(1, [&, setting = setting, expected = expected](Communicator& comm) {
      const std::vector<TensorInfo> tensors = {{"w", {{10, 10}}}};
      Exchange exchange(comm, tensors, with(setting));
      Floats gradient(100, 1.0f);
      gradient[3] = 70000;
      gradient[50] = -1e9f;
      gradient[99] = 3.4e38f;
      exchange.mean(gradient, std::vector<Slice>{{0, 0, 100}});
      EXPECT_TRUE(exchange.end_step());
      const Traffic traffic = exchange.take_epoch_stats().traffic;
      EXPECT_EQ(traffic.saturated, expected) << setting;
      EXPECT_EQ(traffic.entries, setting == std::string("topk") ? 1u : 0u) << setting;
    });
}

// Momentum is either DGC's or the optimizer's, whatever the level keeps.
TEST(Levels, OfDgcCompressTheSameTensors) {
  const Shape shape{{64, 64}};
  for (const char* setting : {"dgc:keep=0.001", "dgc:keep=0.6", "dgc:keep=1"})
    EXPECT_NE(make_compressor(parse_codec(setting), shape, 4, {}), nullptr) << setting;
}

TEST(Levels, RefuseDgcBesideAnother) {
  const std::vector<CodecOptions> mixed = {parse_codec("dgc"), parse_codec("topk")};
  EXPECT_THROW(check_levels(mixed), UsageError);
  const std::vector<CodecOptions> same = {parse_codec("dgc:keep=0.01"), parse_codec("dgc")};
  EXPECT_NO_THROW(check_levels(same));
  const std::vector<CodecOptions> slower = {parse_codec("dgc:keep=0.01"),
                                            parse_codec("dgc:keep=0.01,momentum=0.5")};
  EXPECT_THROW(check_levels(slower), UsageError);
}

}  // namespace
}  // namespace accordion
