#include "accordion/compress/terngrad.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "accordion/compress/codec_testing.h"

namespace accordion {
namespace {

TEST(TernGrad, HasThreeValuesAndKeepsTheLargest) {
  for (std::size_t n : {1, 2, 5, 511, 512, 513, 2000}) {
    const Vector a = noise(n, 1);
    const std::size_t top = static_cast<std::size_t>(
        std::max_element(a.begin(), a.end(), [](float x, float y) { return std::fabs(x) < std::fabs(y); }) -
        a.begin());
    const Vector c = group_mean(TernGradOptions{.clip = 0}, {a});
    EXPECT_EQ(c[top], a[top]);
    for (std::size_t i = 0; i < n; ++i) ASSERT_TRUE(c[i] == 0 || c[i] == std::copysign(a[top], a[i]));
  }
}

TEST(TernGrad, ClipsToDeviations) {
  Vector a(1000);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = i % 2 == 0 ? 1.5f : -0.5f;  // Mean 1/2, deviation 1.
  a[0] = 3;
  double mean = 0, squares = 0;
  for (float x : a) mean += x / 1000.0;
  for (float x : a) squares += (x - mean) * (x - mean) / 1000;
  const Vector c = group_mean(TernGradOptions{.clip = 1.2}, {a});
  EXPECT_FLOAT_EQ(c[0], static_cast<float>(1.2 * std::sqrt(squares)));
}

TEST(TernGrad, IsUnbiasedWithoutClipping) {
  for (bool share : {false, true}) {
    const std::vector<Vector> inputs = {noise(20, 3), noise(20, 4)};
    constexpr int kDraws = 4000;
    std::vector<double> sum(20);
    for (int step = 0; step < kDraws; ++step) {
      const Vector c = group_mean(TernGradOptions{.clip = 0, .share_scale = share}, inputs,
                                  static_cast<std::uint64_t>(step));
      for (std::size_t i = 0; i < 20; ++i) sum[i] += c[i];
    }
    float largest = 0;
    for (const Vector& a : inputs)
      for (float x : a) largest = std::max(largest, std::fabs(x));
    for (std::size_t i = 0; i < 20; ++i) {
      const double right = (inputs[0][i] + inputs[1][i]) / 2.0;
      // The variance of an entry is |a| (R - |a|), a quarter of R^2 at most.
      EXPECT_NEAR(sum[i] / kDraws, right, 6 * largest / 2 / std::sqrt(2.0 * kDraws)) << i;
    }
  }
}

TEST(TernGrad, HandlesEdges) {
  for (bool share : {false, true})
    for (double clip : {0.0, 2.5}) {
      const TernGradOptions options{clip, share};
      EXPECT_EQ(group_mean(options, {Vector{}, Vector{}}), Vector{});
      EXPECT_EQ(group_mean(options, {Vector(70, 0.0f)}), Vector(70, 0.0f));
      // No deviation: clipping would leave nothing.
      for (float size : {0.1f, -1e-42f, 3.4e38f})
        EXPECT_EQ(group_mean(options, {Vector(700, size)}), Vector(700, size));
      for (float x : group_mean(options, {{3.4e38f, -3.4e38f, 1, 0}})) EXPECT_TRUE(std::isfinite(x));
      for (float odd : {NAN, HUGE_VALF}) {
        Vector a(70, 1.0f);
        a[69] = odd;
        const auto codec = make(options, flat(70));
        Bytes out(200);
        for (int i = 0; i < codec->rounds(); ++i)
          EXPECT_FALSE(codec->encode(i, at(0, 1), {a, {}, {}}, out).finite);
      }
    }
  EXPECT_EQ(group_mean(TernGradOptions{.share_scale = true}, std::vector<Vector>(200, Vector(9, 0.5f))),
            Vector(9, 0.5f));
}

TEST(TernGrad, KeepsWhatItDoesNotSend) {
  const Vector g = noise(700, 1), e = noise(700, 2);
  Vector next(700), mean(700);
  const auto codec = make(TernGradOptions{}, flat(700));
  Bytes out(codec->round(0, at(0, 1)).max_bytes);
  codec->encode(0, at(0, 1), {g, e, next}, out);
  const std::vector<Message> messages = {{.payload = out}};
  codec->decode(0, at(0, 1), messages, mean);
  for (std::size_t i = 0; i < 700; ++i) ASSERT_NEAR(mean[i] + next[i], g[i] + e[i], 1e-5) << i;
}

TEST(TernGrad, RefusesWrongMessagesAndOptions) {
  const auto codec = make(TernGradOptions{}, flat(10));
  Vector mean(10);
  Bytes good(7), wrong(6), broken(7);
  const float bad = NAN;
  std::memcpy(broken.data(), &bad, 4);
  for (const Bytes& second : {wrong, broken}) {
    const std::vector<Message> messages = {{.payload = good}, {.payload = second}};
    EXPECT_THROW(codec->decode(0, at(0, 2), messages, mean), Error);
  }
  EXPECT_THROW(make(TernGradOptions{.clip = -1}, flat(10)), UsageError);
}

}  // namespace
}  // namespace accordion
