// A group of machines with different instruction sets: every rank encodes and decodes with its own, and all get
// the same bits, step after step.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "accordion/base/noise_testing.h"
#include "accordion/compress/codec_cases_testing.h"
#include "accordion/compress/codecs.h"
#include "accordion/compress/local_group.h"
#include "accordion/kernels/targets_testing.h"

namespace accordion {
namespace {

const Shape kShape{{37, 53}};

// Those of every codec's place in the tests, and what else takes other ways through the kernels.
std::vector<std::string> settings() {
  std::vector<std::string> all = {"fp16",
                                  "dgc:keep=0.1,warmup=false",
                                  "powersgd:approx-rank=4",
                                  "powersgd:approx-rank=9",
                                  "qsgd:bits=8,coding=elias",
                                  "qsgd:bits=4,norm=l2,chunked=true",
                                  "atomo:budget=5"};
  for (const testing_codecs::CodecEntry& entry : testing_codecs::codec_entries())
    for (const testing_codecs::CodecCase& each : entry.cases)
      if (is_compressed(parse_codec(each.setting), kShape, 2, {.min_count = 1})) all.push_back(each.setting);
  return all;
}

// A codec on a machine of its own.
class OnTarget final : public Compressor {
 public:
  OnTarget(std::unique_ptr<Compressor> codec, std::int64_t target)
      : codec_(std::move(codec)), target_(target) {}

  bool wants_feedback() const override { return codec_->wants_feedback(); }
  int rounds() const override { return codec_->rounds(); }
  Round round(int i, const Context& context) const override { return codec_->round(i, context); }
  Encoded encode(int i, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    hwy::SetSupportedTargetsForTest(target_);
    return codec_->encode(i, context, feedback, out);
  }
  void decode(int i, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    hwy::SetSupportedTargetsForTest(target_);
    codec_->decode(i, context, messages, mean);
  }
  void commit(bool finite) override { codec_->commit(finite); }

 private:
  std::unique_ptr<Compressor> codec_;
  std::int64_t target_;
};

class OnMixedMachines : public ::testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST(MixedMachines, HaveEveryCodec) {
  const std::vector<std::string> all = settings();
  for (const std::string& name : codec_names())
    EXPECT_TRUE(name == "none" || std::any_of(all.begin(), all.end(),
                                              [&](const std::string& setting) {
                                                return codec_name(parse_codec(setting)) == name;
                                              }))
        << name;
}

TEST_P(OnMixedMachines, RanksAgreeOnEveryBit) {
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  const int world = std::max(2, static_cast<int>(targets.size()));
  using Vector = std::vector<float>;
  struct Rank {
    std::unique_ptr<Compressor> codec;
    Vector gradient, residual, next, mean;
  };
  std::vector<Rank> ranks(static_cast<std::size_t>(world));
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    auto codec = make_compressor(parse_codec(GetParam()), kShape, world, {.min_count = 1});
    ASSERT_NE(codec, nullptr);
    Rank& rank = ranks[r];
    rank.codec = std::make_unique<OnTarget>(std::move(codec), targets[r % targets.size()]);
    rank.mean.resize(kShape.count());
    if (rank.codec->wants_feedback()) rank.residual.resize(kShape.count());
    rank.next.resize(rank.residual.size());
  }
  for (std::uint64_t step = 0; step < 3; ++step) {
    std::vector<LocalRank> group;
    for (int r = 0; r < world; ++r) {
      Rank& rank = ranks[static_cast<std::size_t>(r)];
      rank.gradient = noise(kShape.count(), static_cast<unsigned>(100 * step) + static_cast<unsigned>(r));
      group.push_back({*rank.codec,
                       {.step = step, .rank = r, .world = world},
                       {rank.gradient, rank.residual, rank.next},
                       rank.mean});
    }
    for (const LocalRound& round : run_step(group)) ASSERT_TRUE(round.finite());
    for (Rank& rank : ranks) {
      EXPECT_EQ(rank.mean, ranks[0].mean) << "step " << step;
      rank.codec->commit(true);
      rank.residual.swap(rank.next);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, OnMixedMachines, ::testing::ValuesIn(settings()));

}  // namespace
}  // namespace accordion
