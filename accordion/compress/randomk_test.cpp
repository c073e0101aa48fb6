#include "accordion/compress/randomk.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "accordion/base/noise_testing.h"

namespace accordion {
namespace {

using Floats = std::vector<float>;

// One step of some ranks in one thread; the residuals, if any, become the next ones.
Floats step(const RandomKOptions& options, const std::vector<Floats>& gradients,
            std::vector<Floats>* residuals, std::uint64_t number = 0, bool* finite = nullptr) {
  const std::size_t n = gradients[0].size();
  Context context{.seed = 9, .step = number, .world = static_cast<int>(gradients.size())};
  std::vector<std::unique_ptr<Compressor>> codecs;
  Floats sum(payload_bytes(options, {{static_cast<std::int64_t>(n)}}, context.world) / 4);
  for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
    codecs.push_back(make(options, {{static_cast<std::int64_t>(n)}}));
    EXPECT_EQ(codecs[rank]->round(0, context).max_bytes, sum.size() * 4);
    Floats message(sum.size()), next(residuals != nullptr ? n : 0, NAN);
    context.rank = static_cast<int>(rank);
    const Encoded encoded =
        codecs[rank]->encode(0, context, {gradients[rank], residuals ? (*residuals)[rank] : Floats(), next},
                             std::as_writable_bytes(std::span(message)));
    EXPECT_EQ(encoded.bytes, sum.size() * 4);
    if (finite != nullptr) *finite = encoded.finite;
    if (residuals != nullptr) (*residuals)[rank] = next;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += message[i];
  }
  const Message result{.payload = std::as_bytes(std::span(sum))};
  Floats mean(n, NAN);
  for (auto& codec : codecs) {
    Floats own(n, NAN);
    codec->decode(0, context, {&result, 1}, own);
    EXPECT_TRUE(codec == codecs[0] || own == mean);
    mean = own;
  }
  return mean;
}

TEST(RandomK, SendsExactlyKEntriesAndKeepsTheOthers) {
  for (bool block : {false, true})
    for (std::size_t n : {1, 2, 63, 64, 65, 1000})
      for (double keep : {1e-6, 0.01, 0.3, 0.5, 0.77, 1.0}) {
        std::vector<Floats> residuals = {noise(n, 3), noise(n, 4)};
        const std::vector<Floats> gradients = {noise(n, 1), noise(n, 2)}, before = residuals;
        const Floats mean = step({.keep = keep, .block = block}, gradients, &residuals);
        std::size_t sent = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const float a = gradients[0][i] + before[0][i], b = gradients[1][i] + before[1][i];
          if (mean[i] != 0) ++sent;
          EXPECT_EQ(mean[i], mean[i] != 0 ? (a + b) / 2 : 0);
          EXPECT_EQ(residuals[0][i], mean[i] != 0 ? 0 : a);
          EXPECT_EQ(residuals[1][i], mean[i] != 0 ? 0 : b);
        }
        EXPECT_EQ(sent, std::max<std::size_t>(1, static_cast<std::size_t>(keep * static_cast<double>(n))));
      }
}

TEST(RandomK, ABlockIsConsecutiveAroundTheEnd) {
  bool wrapped = false;
  for (std::uint64_t number = 0; number < 50; ++number) {
    const Floats mean =
        step({.keep = 0.4, .block = true, .feedback = false}, {Floats(101, 1.0f)}, nullptr, number);
    int starts = 0;
    for (std::size_t i = 0; i < 101; ++i) starts += mean[i] != 0 && mean[(i + 100) % 101] == 0;
    EXPECT_EQ(starts, 1);
    wrapped = wrapped || (mean[0] != 0 && mean[100] != 0);
  }
  EXPECT_TRUE(wrapped);
}

// Every entry is as likely as every other, and steps differ: over many steps each count is near its
// expectation. Without feedback that is also the estimate's being unbiased.
TEST(RandomK, EntriesAreEquallyLikelyAndTheScaledMeanUnbiased) {
  const Floats a = noise(100, 5);
  for (bool block : {false, true})
    for (double keep : {0.07, 0.6}) {
      std::vector<double> sum(100);
      const int draws = 4000;
      for (std::uint64_t number = 0; number < draws; ++number) {
        const Floats mean = step({.keep = keep, .block = block, .feedback = false}, {a}, nullptr, number);
        for (std::size_t i = 0; i < 100; ++i) sum[i] += mean[i];
      }
      for (std::size_t i = 0; i < 100; ++i)
        EXPECT_NEAR(sum[i] / draws, a[i], 6 * std::abs(a[i]) * std::sqrt((1 / keep - 1) / draws)) << i;
    }
}

TEST(RandomK, WithoutFeedbackAnOldResidualIsSentAndSpent) {
  std::vector<Floats> residuals = {Floats(10, 2.0f)};
  EXPECT_EQ(step({.keep = 1, .feedback = false}, {Floats(10, 1.0f)}, &residuals), Floats(10, 3.0f));
  EXPECT_EQ(residuals[0], Floats(10));
}

TEST(RandomK, SeesEveryValueThatIsNotFinite) {
  for (std::size_t i = 0; i < 130; ++i) {
    Floats a = noise(130, 1);
    a[i] = i % 2 == 0 ? INFINITY : NAN;
    bool finite = true;
    step({}, {a}, nullptr, 0, &finite);
    EXPECT_FALSE(finite) << i;
  }
  bool finite = false;
  step({}, {Floats(130, 3e38f)}, nullptr, 0, &finite);
  EXPECT_TRUE(finite);
}

TEST(RandomK, EmptyLayer) {
  EXPECT_EQ(step({}, {Floats(), Floats()}, nullptr), Floats());
}

TEST(RandomK, RefusesWhatCannotBeRight) {
  EXPECT_THROW(make(RandomKOptions{.keep = 0}, {{4}}), UsageError);
  EXPECT_THROW(make(RandomKOptions{.keep = 1.5}, {{4}}), UsageError);
  EXPECT_THROW(make(RandomKOptions{}, {{1 << 16, 1 << 16}}), UsageError);
  const auto codec = make(RandomKOptions{.keep = 0.5}, {{8}});
  Floats mean(8);
  const Message message{.payload = std::as_bytes(std::span(mean)).first(15)};
  EXPECT_THROW(codec->decode(0, {}, {&message, 1}, mean), Error);
  EXPECT_THROW(codec->decode(0, {}, {}, mean), Error);
}

}  // namespace
}  // namespace accordion
