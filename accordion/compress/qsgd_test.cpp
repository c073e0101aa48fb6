#include "accordion/compress/qsgd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace accordion {
namespace {

using Vector = std::vector<float>;
using Bytes = std::vector<std::byte>;

Vector noise(std::size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Vector values(n);
  for (float& value : values) value = normal(generator) * std::exp(normal(generator));
  return values;
}

Context at(int rank, int world, std::uint64_t step = 0) {
  return {.seed = 5, .step = step, .rank = rank, .world = world};
}

Shape shape(std::size_t n) {
  return {{static_cast<std::int64_t>(n)}};
}

// One step of all ranks; returns the mean, after checking that ranks agree and that messages have their size.
Vector group_mean(const QsgdOptions& options, const std::vector<Vector>& inputs, std::uint64_t step = 0) {
  const int world = static_cast<int>(inputs.size());
  const std::size_t n = inputs[0].size();
  std::vector<std::unique_ptr<Compressor>> codecs;
  for (int rank = 0; rank < world; ++rank) codecs.push_back(make(options, shape(n)));
  std::vector<Vector> means(inputs.size(), Vector(n, NAN));
  std::size_t total = 0;
  for (int i = 0; i < codecs[0]->rounds(); ++i) {
    std::vector<Bytes> sent;
    for (int rank = 0; rank < world; ++rank) {
      const Round round = codecs[rank]->round(i, at(rank, world));
      sent.emplace_back(round.max_bytes);
      const Encoded encoded =
          codecs[rank]->encode(i, at(rank, world, step), {inputs[rank], {}, {}}, sent.back());
      EXPECT_TRUE(encoded.finite);
      EXPECT_TRUE(round.fixed ? encoded.bytes == round.max_bytes : encoded.bytes <= round.max_bytes);
      sent.back().resize(encoded.bytes);
    }
    total += sent[0].size();
    const Round round = codecs[0]->round(i, at(0, world));
    if (round.pattern != Pattern::kGather) {
      Bytes combined = sent[0];
      for (int rank = 1; rank < world; ++rank)
        for (std::size_t k = 0; k < combined.size() / element_bytes(round.element); ++k) {
          if (round.pattern == Pattern::kMax) {
            auto& x = reinterpret_cast<float*>(combined.data())[k];
            x = std::max(x, reinterpret_cast<const float*>(sent[rank].data())[k]);
          } else {
            auto& x = reinterpret_cast<std::int16_t*>(combined.data())[k];
            x = static_cast<std::int16_t>(x + reinterpret_cast<const std::int16_t*>(sent[rank].data())[k]);
          }
        }
      sent = {combined};
    }
    std::vector<Message> messages(sent.size());
    for (std::size_t k = 0; k < sent.size(); ++k) messages[k].payload = sent[k];
    for (int rank = 0; rank < world; ++rank) codecs[rank]->decode(i, at(rank, world), messages, means[rank]);
  }
  if (options.coding == "fixed") {
    EXPECT_EQ(total, payload_bytes(options, shape(n), world));
  }
  for (const Vector& mean : means) EXPECT_EQ(mean, means[0]);
  return means[0];
}

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
        for (int rank = 0; rank < world; ++rank) inputs.push_back(noise(n, 10 + rank));
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
    const Vector a = noise(20, 3);
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
      EXPECT_EQ(group_mean({.bits = bits, .coding = coding}, {a}), a) << bits;
  }
}

TEST(Qsgd, CodesAgree) {
  const Vector a = noise(3000, 1), b = noise(3000, 2);
  EXPECT_EQ(group_mean({.norm = "l2"}, {a, b}), group_mean({.norm = "l2", .coding = "elias"}, {a, b}));
}

TEST(Qsgd, WritesEliasCodes) {
  // Scale 1; three non-zero levels: 4 -> 101000; distance 1 -> 0, plus, 1 -> 0; distance 2 -> 100, minus, 1
  // -> 0; distance 1 -> 0, plus, 1 -> 0. Bits fill bytes from the low end.
  const auto codec = make({.bits = "2", .coding = "elias"}, shape(4));
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
      const auto codec = make(options, shape(600));
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
    const Vector g = noise(700, 1), e = noise(700, 2);
    Vector next(700), mean(700);
    const auto codec = make(options, shape(700));
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
    const Vector a = noise(700, 1);
    const auto codec = make(options, shape(700));
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

TEST(Qsgd, RefusesWrongOptions) {
  EXPECT_THROW(make({.bits = "3"}, shape(4)), UsageError);
  EXPECT_THROW(make({.block = 0}, shape(4)), UsageError);
  EXPECT_THROW(make({.norm = "l1"}, shape(4)), UsageError);
  EXPECT_THROW(make({.coding = "elias", .share_scale = true}, shape(4)), UsageError);
  EXPECT_THROW(make({.bits = "8", .share_scale = true}, shape(4))->round(0, at(0, 259)), UsageError);
  EXPECT_NO_THROW(make({.bits = "8", .share_scale = true}, shape(4))->round(0, at(0, 258)));
}

}  // namespace
}  // namespace accordion
