#include "accordion/compress/qsgd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "accordion/compress/codec_testing.h"

namespace accordion {
namespace {

const std::vector<QsgdOptions> kAll = {{.bits = "2"},
                                       {.bits = "4"},
                                       {.bits = "8"},
                                       {.block = 100},
                                       {.block = 7, .norm = "l2"},
                                       {.bits = "2", .block = 3},
                                       {.norm = "l2", .coding = "elias"},
                                       {.bits = "8", .block = 1000, .coding = "elias"},
                                       {.bits = "2", .coding = "elias"},
                                       {.share_scale = true},
                                       {.bits = "8", .block = 60, .share_scale = true}};

TEST(Qsgd, StaysWithinOneStepOfEveryEntry) {
  for (const QsgdOptions& options : kAll)
    for (std::size_t n : {0, 1, 33, 511, 512, 513, 1999})
      for (int world : {1, 3}) {
        std::vector<Vector> inputs;
        for (int rank = 0; rank < world; ++rank) inputs.push_back(heavy_tailed(n, 10 + rank, 1));
        const Vector mean = group_mean(options, inputs);
        const int steps = (1 << (std::stoi(options.bits) - 1)) - 1;
        for (std::size_t i = 0; i < n; ++i) {
          double right = 0, room = 0, widest = 0;
          for (const Vector& a : inputs) {
            const std::size_t first = i / options.block * options.block,
                              last = std::min(n, first + options.block);
            double norm = 0;
            for (std::size_t k = first; k < last; ++k)
              norm = options.norm == "l2" ? std::hypot(norm, a[k]) : std::max<double>(norm, std::fabs(a[k]));
            right += a[i] / static_cast<double>(world);
            room += norm / steps / world;
            widest = std::max(widest, norm / steps);
          }
          ASSERT_NEAR(mean[i], right, 1.0001 * (options.share_scale ? widest : room) + 1e-6) << n << " " << i;
        }
      }
}

TEST(Qsgd, IsUnbiased) {
  for (const QsgdOptions& options : kAll) {
    const Vector a = heavy_tailed(20, 3, 1);
    constexpr int kDraws = 4000;
    std::vector<double> sum(a.size()), squares(a.size());
    for (int step = 0; step < kDraws; ++step) {
      const Vector c = group_mean(options, {a}, static_cast<std::uint64_t>(step));
      for (std::size_t i = 0; i < a.size(); ++i)
        sum[i] += c[i], squares[i] += static_cast<double>(c[i]) * c[i];
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double mean = sum[i] / kDraws,
                   deviation = std::sqrt(std::max(squares[i] / kDraws - mean * mean, 0.0));
      EXPECT_NEAR(mean, a[i], 6 * deviation / std::sqrt(kDraws) + 1e-5 * std::fabs(a[i]) + 1e-4) << i;
    }
  }
}

TEST(Qsgd, KeepsTheGridExactly) {
  for (const char* bits : {"2", "4", "8"}) {
    const int steps = (1 << (std::stoi(bits) - 1)) - 1;
    Vector a;
    for (int level = -steps; level <= steps; ++level) a.push_back(0.5f * static_cast<float>(level));
    for (const char* coding : {"fixed", "elias"})
      EXPECT_EQ(group_mean(QsgdOptions{.bits = bits, .coding = coding}, {a}), a) << bits;
  }
}

TEST(Qsgd, CodesAgree) {
  const Vector a = heavy_tailed(3000, 1, 1), b = heavy_tailed(3000, 2, 1);
  EXPECT_EQ(group_mean(QsgdOptions{.norm = "l2"}, {a, b}),
            group_mean(QsgdOptions{.norm = "l2", .coding = "elias"}, {a, b}));
}

TEST(Qsgd, WritesEliasCodes) {
  // Scale 1; three non-zero levels: 4 -> 101000; distance 1 -> 0, plus, 1 -> 0; distance 2 -> 100, minus, 1
  // -> 0; distance 1 -> 0, plus, 1 -> 0. Bits fill bytes from the low end.
  const auto codec = make({.bits = "2", .coding = "elias"}, flat(4));
  Bytes out(codec->round(0, at(0, 1)).max_bytes);
  const Vector a = {1, 0, -1, 1};
  const Encoded encoded = codec->encode(0, at(0, 1), {a, {}, {}}, out);
  ASSERT_EQ(encoded.bytes, 7u);
  // As read: 101000 000 10010 000, in bytes 10100000 01001000 0.
  const unsigned stream[] = {0x00, 0x00, 0x80, 0x3f, 0b00000101, 0b00010010, 0};
  for (std::size_t k = 0; k < 7; ++k) EXPECT_EQ(std::to_integer<unsigned>(out[k]), stream[k]) << k;
}

TEST(Qsgd, HandlesEdges) {
  for (const QsgdOptions& options : kAll) {
    EXPECT_EQ(group_mean(options, {Vector(600, 0.0f), Vector(600, -0.0f)}), Vector(600, 0.0f));
    for (float size : {1e-42f, 3e38f}) {
      const Vector mean = group_mean(options, {Vector(600, size)});
      for (float x : mean) ASSERT_TRUE(std::isfinite(x));
    }
    for (float odd : {NAN, HUGE_VALF}) {
      Vector a(600, 1.0f);
      a[599] = odd;
      const auto codec = make(options, flat(600));
      for (int i = 0; i < codec->rounds(); ++i) {
        Bytes out(codec->round(i, at(0, 1)).max_bytes);
        EXPECT_FALSE(codec->encode(i, at(0, 1), {a, {}, {}}, out).finite);
      }
    }
  }
}

TEST(Qsgd, KeepsWhatItDoesNotSend) {
  for (const QsgdOptions& options : kAll) {
    if (options.share_scale) continue;
    const Vector g = heavy_tailed(700, 1, 1), e = heavy_tailed(700, 2, 1);
    Vector next(700), mean(700);
    const auto codec = make(options, flat(700));
    Bytes out(codec->round(0, at(0, 1)).max_bytes);
    out.resize(codec->encode(0, at(0, 1), {g, e, next}, out).bytes);
    const std::vector<Message> messages = {{.payload = out}};
    codec->decode(0, at(0, 1), messages, mean);
    for (std::size_t i = 0; i < 700; ++i) ASSERT_NEAR(mean[i] + next[i], g[i] + e[i], 1e-5) << i;
  }
}

TEST(Qsgd, SurvivesCorruptedMessages) {
  std::mt19937 generator(9);
  for (const QsgdOptions& options : kAll) {
    if (options.share_scale) continue;
    const Vector a = heavy_tailed(700, 1, 1);
    const auto codec = make(options, flat(700));
    Bytes out(codec->round(0, at(0, 1)).max_bytes);
    out.resize(codec->encode(0, at(0, 1), {a, {}, {}}, out).bytes);
    for (int trial = 0; trial < 300; ++trial) {
      Bytes bad = out;
      const bool truncated = trial % 3 == 0;
      if (truncated) {
        bad.resize(generator() % bad.size());
      } else {
        for (int k = 0; k < 3; ++k) bad[generator() % bad.size()] ^= std::byte(1 << generator() % 8);
      }
      bad.shrink_to_fit();
      Vector mean(700);
      const std::vector<Message> messages = {{.payload = bad}};
      try {
        codec->decode(0, at(0, 1), messages, mean);
        EXPECT_FALSE(truncated);
        for (float x : mean) ASSERT_FALSE(std::isnan(x));
      } catch (const Error&) {
      }
    }
  }
}

TEST(Qsgd, RefusesScalesThatCannotBe) {
  for (const QsgdOptions& options : kAll) {
    if (options.share_scale) continue;
    const Vector a = heavy_tailed(700, 1, 1);
    const auto codec = make(options, flat(700));
    Bytes good(codec->round(0, at(0, 2)).max_bytes);
    good.resize(codec->encode(0, at(0, 2), {a, {}, {}}, good).bytes);
    for (const float scale : {-1.0f, INFINITY, NAN}) {
      Bytes bad = good;
      std::memcpy(bad.data(), &scale, sizeof scale);  // Every message starts with one.
      Vector mean(700);
      const std::vector<Message> messages = {{.payload = good}, {.payload = bad}};
      EXPECT_THROW(codec->decode(0, at(0, 2), messages, mean), Error) << scale;
    }
  }
}

TEST(Qsgd, RefusesWrongOptions) {
  EXPECT_THROW(make({.bits = "3"}, flat(4)), UsageError);
  EXPECT_THROW(make({.block = 0}, flat(4)), UsageError);
  EXPECT_THROW(make({.norm = "l1"}, flat(4)), UsageError);
  EXPECT_THROW(make({.coding = "elias", .share_scale = true}, flat(4)), UsageError);
}

}  // namespace
}  // namespace accordion
