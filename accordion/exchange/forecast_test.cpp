// The exchange's own count is what a forecast must meet. Each codec setting alone: codecs_suite_test.cpp.
#include "accordion/exchange/forecast.h"

#include "accordion/exchange/drawn_testing.h"

namespace accordion {
namespace {

using namespace testing_codecs;

const std::vector<TensorInfo> kTensors = {
    {"weight", {{64, 32, 3, 3}}}, {"small", {{4, 5}}}, {"bias", {{64}}}};
constexpr std::size_t kWeight = 64 * 32 * 9;

TallyRange at_level_0(const ExchangeOptions& options, int ranks, int epoch = 0, int epochs = 1) {
  return StepForecast(kTensors, options, ranks, epochs).step(std::vector<int>(kTensors.size(), 0), epoch);
}

// Any codecs, shapes, buckets, contents and changes of level, and tensors that a step leaves out.
TEST(Forecast, HoldsForAnyStep) {
  holds(300, [] {
    const bool with_dgc = between(0, 3) == 0;
    const Plan plan = any_plan({.codecs = several(4, with_dgc ? dgc : any_codec)});
    ExchangeOptions options{.levels = {}, .routing = kCompressAll};
    for (const std::string& setting : plan.codecs) options.levels.push_back(parse_codec(setting));
    std::vector<TensorInfo> tensors;
    for (const Shape& shape : plan.shapes) tensors.push_back({"t", shape});
    const StepForecast forecast(tensors, options, plan.ranks, 1);

    const std::vector<Outcome> outcomes = run_logged(plan);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      if (!outcomes[s].kept) continue;
      TallyRange range;
      for (const auto& bucket : plan.steps[s].buckets)
        for (const int t : bucket) {
          const auto i = static_cast<std::size_t>(t);
          const TallyRange& one = forecast.tensor(i, plan.steps[s].levels[i], 0);
          range.least += one.least;
          range.most += one.most;
        }
      const Traffic& traffic = outcomes[s].traffic;
      RC_ASSERT(range.least.payload_bytes <= traffic.payload_bytes);
      RC_ASSERT(range.most.payload_bytes >= traffic.payload_bytes);
      RC_ASSERT(range.least.paper_floats <= traffic.paper_floats);
      RC_ASSERT(range.most.paper_floats >= traffic.paper_floats);
      RC_ASSERT(range.least.wire_bytes(plan.ranks) <= traffic.wire_bytes);
      RC_ASSERT(range.most.wire_bytes(plan.ranks) >= traffic.wire_bytes);
    }
  });
}

// The least is reached, so it could not be more.
TEST(Forecast, BoundsAreReached) {
  struct Case {
    const char* setting;
    Content least, most;
  };
  const Shape shape{{64, 65}};
  for (const Case& each : {Case{"threshold:lambda=0.5", Content::kZero, Content::kHuge},
                           Case{"qsgd:bits=2,coding=elias", Content::kZero, Content::kConstant}}) {
    const ExchangeOptions options{.levels = {parse_codec(each.setting)}};
    const TallyRange range = StepForecast({{"t", shape}}, options, 2, 1).tensor(0, 0, 0);
    const auto sent = [&](Content content) {
      const Step step{.levels = {0},
                      .buckets = {{0}},
                      .gradients = {{fill(shape, content, 1)}, {fill(shape, content, 1)}}};
      return run({.shapes = {shape}, .codecs = {each.setting}, .ranks = 2, .steps = {step}})[0].traffic;
    };
    EXPECT_EQ(sent(each.least).payload_bytes, range.least.payload_bytes) << each.setting;
    // Bits of the last byte, and a shorter last block, are what the bound does not look into.
    EXPECT_NEAR(static_cast<double>(sent(each.most).payload_bytes),
                static_cast<double>(range.most.payload_bytes), 4)
        << each.setting;
  }
}

TEST(Forecast, FollowsTheWarmUpOfDgc) {
  const ExchangeOptions options{.levels = {parse_codec("dgc:keep=0.001,warmup=true")}};
  const auto entries = [&](int epoch) {
    const std::uint64_t dense = (20 + 64) * sizeof(float);
    return (at_level_0(options, 4, epoch, 9).most.payload_bytes - dense) / 8;
  };
  EXPECT_EQ(entries(0), kWeight / 4);
  EXPECT_EQ(entries(1), kWeight / 16);
  EXPECT_EQ(entries(4), 19u);  // A thousandth, rounded up.
  EXPECT_EQ(entries(8), 19u);
}

// A threshold that is guessed from all entries is no guess: exactly k reach it, but for ties.
TEST(Forecast, IsExactForADgcThatSamplesAll) {
  const char* setting = "dgc:keep=0.1,sample=1,momentum=0";
  const Shape shape{{64, 65}};
  const TallyRange range =
      StepForecast({{"t", shape}}, {.levels = {parse_codec(setting)}}, 2, 1).tensor(0, 0, 0);
  EXPECT_TRUE(range.exact());
  const Step step{.levels = {0}, .buckets = {{0}}, .gradients = {{noise(64 * 65, 1)}, {noise(64 * 65, 2)}}};
  const Plan plan{.shapes = {shape}, .codecs = {setting}, .ranks = 2, .steps = {step}};
  EXPECT_EQ(run(plan)[0].traffic.payload_bytes, range.most.payload_bytes);
}

// As published, whatever has two dimensions is compressed and TopK is always gathered: that is how its floats
// were counted.
TEST(Forecast, FollowsThePublishedRouting) {
  ExchangeOptions options{.levels = {parse_codec("topk:keep=0.5")}};
  EXPECT_EQ(at_level_0(options, 4).most.paper_floats, kWeight + 20 + 64);
  options.published = true;
  EXPECT_EQ(at_level_0(options, 4).most.paper_floats, 2 * 4 * (kWeight / 2 + 10) + 64);
}

TEST(Forecast, RefusesWhatSoManyRanksCannotHave) {
  EXPECT_THROW(at_level_0({.levels = {parse_codec("sign-vote:count=true")}}, 200), UsageError);
}

TEST(Tally, BoundsEachCountAndTheWireByItself) {
  Tally sum, gather;
  sum.sum(800, 200);
  gather.gather(400, 4);
  // Half the payload, and on the wire 3 * 416 against 2 * 800 * 3 / 4; the published count takes all ranks'.
  const Tally least = at_most_both(sum, gather, 4), most = at_least_both(sum, gather, 4);
  EXPECT_EQ(least.payload_bytes, 400u);
  EXPECT_EQ(most.payload_bytes, 800u);
  EXPECT_EQ(least.wire_bytes(4), 1200u);
  EXPECT_EQ(most.wire_bytes(4), 1248u);
  EXPECT_EQ(least.paper_floats, 200u);
  EXPECT_EQ(most.paper_floats, 400u);
}

}  // namespace
}  // namespace accordion
