#include "accordion/compress/mstopk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/base/noise_testing.h"

namespace accordion {
namespace {

using Floats = std::vector<float>;

// One rank among `world` alike, which is what the dense form needs to give a back whole.
struct Step {
  Floats mean, next;
  bool finite;
};

Step run(const MsTopKOptions& options, const Floats& a, int world = 1, std::uint64_t step = 0) {
  const auto codec = make(options, Shape{{static_cast<std::int64_t>(a.size())}});
  const Context context{.step = step, .world = world};
  const Round round = codec->round(0, context);
  std::vector<std::byte> bytes(round.max_bytes);
  Step result{Floats(a.size(), 5.0f), Floats(a.size(), 9.0f), true};
  const Floats zeros(a.size());
  const Encoded encoded = codec->encode(0, context, {a, zeros, result.next}, bytes);
  result.finite = encoded.finite;
  EXPECT_EQ(encoded.bytes, payload_bytes(options, Shape{{static_cast<std::int64_t>(a.size())}}, world));
  std::vector<Message> messages(world, Message{bytes, encoded.count, encoded.flags});
  if (round.pattern == Pattern::kSum) {
    for (std::size_t i = 0; i < a.size(); ++i)
      reinterpret_cast<float*>(bytes.data())[i] *= static_cast<float>(world);
    messages.resize(1);
  }
  codec->decode(0, context, messages, result.mean);
  return result;
}

// The search as it is written down, on all of a.
Floats as_specified(const Floats& a, std::size_t k, int samples, const Context& context) {
  const auto count = [&](float t) {
    return std::count_if(a.begin(), a.end(), [=](float x) { return std::abs(x) >= t; });
  };
  const auto wanted = static_cast<std::ptrdiff_t>(k);
  double mean = 0, largest = 0, lo = 0, hi = 1;
  for (float x : a)
    mean += std::abs(x) / static_cast<double>(a.size()), largest = std::max<double>(largest, std::abs(x));
  std::ptrdiff_t k1 = 0, k2 = static_cast<std::ptrdiff_t>(a.size());
  float t1 = std::numeric_limits<float>::infinity(), t2 = 0;
  double base = mean, span = largest - mean;
  if (count(static_cast<float>(mean)) < wanted) base = 0, span = mean;
  for (int i = 0; i < samples; ++i) {
    const double r = (lo + hi) / 2;
    const auto t = static_cast<float>(base + r * span);
    const std::ptrdiff_t c = count(t);
    if (c == wanted) {
      k1 = wanted, t1 = t;
      break;
    }
    if (c < wanted) {
      hi = r;
      if (c > k1) k1 = c, t1 = t;
    } else {
      lo = r;
      if (c < k2) k2 = c, t2 = t;
    }
  }
  std::ptrdiff_t missing = wanted - k1, skip = 0;
  if (missing > 0)
    skip =
        RandomStream(context.private_key("mstopk")).below(static_cast<std::uint32_t>(k2 - k1 - missing + 1));
  Floats sent(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i]) >= t1)
      sent[i] = a[i];
    else if (std::abs(a[i]) >= t2 && skip-- <= 0 && missing-- > 0)
      sent[i] = a[i];
  }
  return sent;
}

TEST(MsTopK, ChoosesWhatTheSearchAsWrittenChooses) {
  for (std::size_t n : {1, 2, 100, 4000})
    for (double keep : {0.01, 0.1, 0.6, 0.9})
      for (int samples : {1, 3, 8, 25}) {
        const Floats a = heavy_tailed(n, 4);
        const std::size_t k = std::clamp<std::size_t>(static_cast<std::size_t>(keep * n), 1, n);
        const Step step = run({keep, samples}, a, 1, 7);
        const Floats expected = as_specified(a, k, samples, {.step = 7});
        EXPECT_EQ(step.mean, expected) << n << " entries, keep " << keep << ", samples " << samples;
        for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(step.next[i], expected[i] == 0 ? a[i] : 0) << i;
      }
}

TEST(MsTopK, SendsExactlyKCloseToTheLargest) {
  const Floats a = heavy_tailed(40000, 6);
  Floats sizes;
  for (float x : a) sizes.push_back(std::abs(x));
  std::sort(sizes.rbegin(), sizes.rend());
  for (double keep : {0.001, 0.01, 0.1, 0.5, 0.9})
    for (int world : {1, 2, 16})
      for (int samples : {1, 25}) {
        SCOPED_TRACE(::testing::Message()
                     << "keep " << keep << ", world " << world << ", samples " << samples);
        const auto k = static_cast<std::size_t>(keep * a.size());
        const Step step = run({keep, samples}, a, world);
        double sent = 0, best = 0, least = 1e30;
        for (std::size_t i = 0; i < a.size(); ++i) {
          ASSERT_TRUE(step.next[i] == 0 || step.next[i] == a[i]) << i;
          ASSERT_NEAR(step.mean[i] + step.next[i], a[i], 1e-6f * std::abs(a[i])) << i;
          ASSERT_TRUE(step.mean[i] == 0 || step.next[i] == 0) << i;
          sent += static_cast<double>(step.mean[i]) * step.mean[i];
          if (step.mean[i] != 0) least = std::min<double>(least, std::abs(step.mean[i]));
        }
        for (std::size_t i = 0; i < k; ++i) best += static_cast<double>(sizes[i]) * sizes[i];
        EXPECT_EQ(a.size() - std::count(step.mean.begin(), step.mean.end(), 0.0f), k);
        EXPECT_LE(sent, best * (1 + 1e-6));
        EXPECT_GE(sent, best * static_cast<double>(k) / a.size());
        if (samples == 25) {
          EXPECT_GE(least, 0.8 * sizes[k - 1]);
        }
      }
}

TEST(MsTopK, TakesARunAtARandomPlaceFromEqualEntries) {
  for (std::size_t n : {1000, 20000}) {
    const Floats a(n, -2.0f);
    std::vector<std::size_t> first;
    for (std::uint64_t step : {1, 2, 3}) {
      const Floats mean = run({0.01}, a, 1, step).mean;
      first.push_back(std::find(mean.begin(), mean.end(), -2.0f) - mean.begin());
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(mean[i] != 0, i - first.back() < n / 100) << i;
    }
    EXPECT_FALSE(first[0] == first[1] && first[1] == first[2]);
  }
}

TEST(MsTopK, HandlesZeroEmptyHugeAndNonFinite) {
  for (std::size_t n : {0, 1, 5, 10000}) {
    EXPECT_EQ(run({0.1}, Floats(n)).mean, Floats(n));
    EXPECT_EQ(run({1.0}, Floats(n, 3e38f)).mean, Floats(n, 3e38f));
    EXPECT_TRUE(run({0.3}, Floats(n, -3e38f), 1).finite);
  }
  for (int world : {1, 20}) {
    Floats a = heavy_tailed(10000, 2);
    a[9999] = std::nanf("");
    EXPECT_FALSE(run({0.1}, a, world).finite);
  }
}

TEST(MsTopK, RefusesOptionsOutOfRange) {
  EXPECT_THROW(make(MsTopKOptions{0}, Shape{{8}}), UsageError);
  EXPECT_THROW(make(MsTopKOptions{0.1, 0}, Shape{{8}}), UsageError);
}

}  // namespace
}  // namespace accordion
