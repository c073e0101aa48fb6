// A group of machines with different instruction sets: every rank encodes and decodes with its own, and all get
// the same bits, step after step.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "accordion/base/noise_testing.h"
#include "accordion/compress/codec_testing.h"
#include "accordion/compress/codecs.h"
#include "accordion/kernels/targets_testing.h"

namespace accordion {
namespace {

constexpr const char* kSettings[] = {"fp16",
                                     "bf16:feedback=true",
                                     "sign-vote",
                                     "sign-scaled",
                                     "randomk:keep=0.1",
                                     "threshold:lambda=1",
                                     "topk:keep=0.1",
                                     "mstopk:keep=0.1",
                                     "dgc:keep=0.1,warmup=false",
                                     "powersgd:approx-rank=1",
                                     "powersgd:approx-rank=4",
                                     "powersgd:approx-rank=9",
                                     "qsgd:bits=2",
                                     "qsgd:bits=4,norm=l2",
                                     "qsgd:bits=8,coding=elias",
                                     "qsgd:bits=4,share-scale=true",
                                     "terngrad",
                                     "atomo:budget=5"};

class OnMixedMachines : public ::testing::TestWithParam<const char*> {
 protected:
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(OnMixedMachines, RanksAgreeOnEveryBit) {
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  const int world = std::max(2, static_cast<int>(targets.size()));
  const Shape shape{{37, 53}};
  const CodecOptions codec = parse_codec(GetParam());
  struct Rank {
    std::unique_ptr<Compressor> compressor;
    Vector residual, next, mean;
  };
  std::vector<Rank> ranks(static_cast<std::size_t>(world));
  const auto run = [&](int rank) -> Rank& {
    hwy::SetSupportedTargetsForTest(targets[static_cast<std::size_t>(rank) % targets.size()]);
    return ranks[static_cast<std::size_t>(rank)];
  };
  for (Rank& rank : ranks) {
    rank.compressor = make_compressor(codec, shape, world, {.min_count = 1});
    ASSERT_NE(rank.compressor, nullptr);
    rank.mean.resize(shape.count());
    if (rank.compressor->wants_feedback()) rank.residual.resize(shape.count());
    rank.next.resize(rank.residual.size());
  }
  for (std::uint64_t step = 0; step < 3; ++step) {
    for (int i = 0; i < ranks[0].compressor->rounds(); ++i) {
      const Round round = ranks[0].compressor->round(i, at(0, world, step));
      std::vector<Bytes> sent;
      std::vector<Message> messages;
      for (int r = 0; r < world; ++r) {
        Rank& rank = run(r);
        const Vector gradient =
            noise(shape.count(), static_cast<unsigned>(100 * step) + static_cast<unsigned>(r));
        sent.emplace_back(round.max_bytes);
        const Encoded encoded =
            rank.compressor->encode(i, at(r, world, step), {gradient, rank.residual, rank.next}, sent.back());
        ASSERT_TRUE(encoded.finite);
        sent.back().resize(encoded.bytes);
        messages.push_back({{}, encoded.count, encoded.flags});
      }
      sent = combine(round, std::move(sent));
      messages.resize(sent.size());
      for (std::size_t k = 0; k < sent.size(); ++k) messages[k].payload = sent[k];
      for (int r = 0; r < world; ++r) {
        Rank& rank = run(r);
        rank.compressor->decode(i, at(r, world, step), messages, rank.mean);
      }
    }
    for (Rank& rank : ranks) {
      EXPECT_EQ(rank.mean, ranks[0].mean) << "step " << step;
      rank.compressor->commit(true);
      rank.residual.swap(rank.next);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, OnMixedMachines, ::testing::ValuesIn(kSettings));

}  // namespace
}  // namespace accordion
