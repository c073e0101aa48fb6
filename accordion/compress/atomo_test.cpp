#include "accordion/compress/atomo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "accordion/base/noise_testing.h"

namespace accordion {
namespace {

using Floats = std::vector<float>;

double distance(const Floats& x, const Floats& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += std::pow(static_cast<double>(x[i]) - y[i], 2);
  return sum;
}

// A 5 x 7 matrix with singular values 5, 4, 3, 2, 1.
Floats diagonal() {
  Floats a(35);
  for (std::size_t i = 0; i < 5; ++i) a[i * 7 + (i * 3) % 7] = static_cast<float>(5 - i);
  return a;
}

struct Sent {
  std::vector<std::byte> payload;
  Encoded encoded;
  Message message() const { return {payload, encoded.count, encoded.flags}; }
};

Sent encode(Compressor& codec, const Context& context, const Feedback& feedback) {
  Sent sent{std::vector<std::byte>(codec.round(0, context).max_bytes), {}};
  sent.encoded = codec.encode(0, context, feedback, sent.payload);
  EXPECT_LE(sent.encoded.bytes, sent.payload.size());
  sent.payload.resize(sent.encoded.bytes);
  return sent;
}

TEST(Atomo, ExactWhenTheBudgetCoversTheRank) {
  for (const Shape& shape :
       {Shape{{5, 7}}, Shape{{40, 3}}, Shape{{3, 40}}, Shape{{1, 9}}, Shape{{1}}, Shape{{6, 2, 2}}}) {
    const auto codec = make(AtomoOptions{.budget = 50}, shape);
    const Floats a = noise(shape.count(), 1), b = noise(shape.count(), 2);
    const Sent sent[] = {encode(*codec, {.world = 2}, {a, {}, {}}),
                         encode(*codec, {.rank = 1, .world = 2}, {b, {}, {}})};
    const Message messages[] = {sent[0].message(), sent[1].message()};
    Floats mean(shape.count(), NAN);
    codec->decode(0, {.world = 2}, messages, mean);
    for (std::size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(mean[i], (a[i] + b[i]) / 2, 1e-5);
  }
}

// Mean, variance and expected length of the sample, for budgets below one, between, and with certain
// triplets.
TEST(Atomo, IsUnbiasedWithTheVarianceOfItsProbabilities) {
  const Floats a = diagonal();
  for (double budget : {0.5, 2.0, 3.5}) {
    double rest = 15, left = budget, variance = 0;
    for (int s = 5; s > 0; --s) {
      double keep = 1;
      if (left * s > rest) {
        left -= 1, rest -= s;
      } else {
        keep = left * s / rest;
      }
      variance += s * s * (1 / keep - 1);
    }
    const auto codec = make(AtomoOptions{.budget = budget}, {{5, 7}});
    const int draws = 4000;
    std::vector<double> sum(35);
    double squares = 0, count = 0;
    for (std::uint64_t step = 0; step < draws; ++step) {
      const Context context{.seed = 4, .step = step};
      const Sent sent = encode(*codec, context, {a, {}, {}});
      const Message message = sent.message();
      EXPECT_EQ(sent.payload.size(), 4u * (message.flags == 0 ? message.count * (5 + 7 + 1) : 35));
      count += message.flags == 0 ? message.count : 3;  // Dense from three triplets up.
      Floats mean(35, NAN);
      codec->decode(0, context, {&message, 1}, mean);
      for (std::size_t i = 0; i < 35; ++i) sum[i] += mean[i];
      squares += distance(mean, a);
    }
    for (std::size_t i = 0; i < 35; ++i)
      EXPECT_NEAR(sum[i] / draws, a[i], 6 * std::sqrt(variance / draws)) << budget;
    EXPECT_NEAR(squares / draws, variance, 0.1 * variance);
    EXPECT_TRUE(budget > 1 || std::abs(count / draws - budget) < 0.1) << count / draws;
  }
}

TEST(Atomo, DecodesAlikeFromRanksThatDrewDifferently) {
  const std::size_t world = 5, rows = 24, columns = 30;
  std::vector<Sent> sent;
  std::vector<Message> messages;
  const Floats a = noise(rows * columns, 3);
  const auto codec = make(AtomoOptions{.budget = 3}, {{24, 30}}),
             other = make(AtomoOptions{.budget = 3}, {{24, 30}});
  for (std::size_t rank = 0; rank < world; ++rank)
    sent.push_back(encode(*codec, {.rank = static_cast<int>(rank), .world = 5}, {a, {}, {}}));
  for (const Sent& one : sent) messages.push_back(one.message());
  EXPECT_FALSE(std::equal(sent[0].payload.begin(), sent[0].payload.end(), sent[1].payload.begin(),
                          sent[1].payload.end()));

  Floats mean(rows * columns, NAN), again(rows * columns, NAN);
  codec->decode(0, {.world = 5}, messages, mean);
  other->decode(0, {.world = 5}, messages, again);
  EXPECT_EQ(mean, again);

  // A dense message among them counts like the others.
  Sent dense{std::vector<std::byte>(a.size() * 4), {.bytes = a.size() * 4, .flags = 1}};
  std::memcpy(dense.payload.data(), a.data(), a.size() * 4);
  Floats three(a.size());
  const Message one = messages[3];
  codec->decode(0, {.world = 5}, {&one, 1}, three);
  messages[3] = dense.message();
  codec->decode(0, {.world = 5}, messages, again);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(again[i], mean[i] - three[i] + a[i] / 5, 1e-5);
}

TEST(Atomo, EdgesOfSizeAndValue) {
  for (const Shape& shape : {Shape{{0}}, Shape{{0, 3}}, Shape{{3, 0}}, Shape{{4, 5}}}) {
    const auto codec = make(AtomoOptions{}, shape);
    Floats a(shape.count()), residual(shape.count(), 0.0f), next(shape.count(), 7.0f);
    const Sent sent = encode(*codec, {}, {a, residual, next});
    EXPECT_EQ(sent.encoded.bytes, 0u);
    EXPECT_TRUE(sent.encoded.finite);
    EXPECT_EQ(next, a);
    const Message message = sent.message();
    Floats mean(shape.count(), NAN);
    codec->decode(0, {}, {&message, 1}, mean);
    EXPECT_EQ(mean, a);
  }
  const auto codec = make(AtomoOptions{.budget = 9}, {{4, 5}});
  for (float scale : {1e-40f, 1e-20f, 1e20f, 3e37f}) {
    const Floats a = noise(20, 1, scale);
    const Sent sent = encode(*codec, {}, {a, {}, {}});
    const Message message = sent.message();
    Floats mean(20, NAN);
    codec->decode(0, {}, {&message, 1}, mean);
    for (std::size_t i = 0; i < 20; ++i) EXPECT_NEAR(mean[i] / scale, a[i] / scale, 1e-4);
  }
  for (float bad : {INFINITY, -INFINITY, NAN}) {
    Floats a = noise(20, 1);
    a[13] = bad;
    EXPECT_FALSE(encode(*codec, {}, {a, {}, {}}).encoded.finite);
  }
  // The largest singular value overflows: the matrix is sent as it is.
  const Floats huge(20, 3e38f);
  const Sent sent = encode(*codec, {}, {huge, {}, {}});
  EXPECT_EQ(sent.encoded.flags, 1);
  EXPECT_EQ(std::memcmp(sent.payload.data(), huge.data(), 80), 0);
}

TEST(Atomo, RefusesOrSurvivesCorruptedMessages) {
  EXPECT_THROW(make(AtomoOptions{.budget = 0}, {{4, 4}}), UsageError);
  const auto codec = make(AtomoOptions{.budget = 2}, {{24, 30}});
  const Floats a = noise(720, 1);
  const Sent sent = encode(*codec, {}, {a, {}, {}});
  Floats mean(720);
  ASSERT_GT(sent.encoded.count, 0u);
  const auto decode = [&](Message message) { codec->decode(0, {}, {&message, 1}, mean); };
  decode(sent.message());
  for (std::uint32_t count : {0u, sent.encoded.count + 1, 25u, 0xffffffffu})
    EXPECT_THROW(decode({sent.payload, count, 0}), Error) << count;
  EXPECT_THROW(decode({sent.payload, sent.encoded.count, 1}), Error);
  EXPECT_THROW(decode({sent.payload, sent.encoded.count, 2}), Error);
  EXPECT_THROW(decode({std::span(sent.payload).first(sent.payload.size() - 1), sent.encoded.count, 0}),
               Error);
  for (float bad : {-1.0f, NAN, INFINITY}) {
    Sent changed = sent;
    std::memcpy(changed.payload.data(), &bad, 4);
    EXPECT_THROW(decode(changed.message()), Error);
  }
  std::mt19937 generator(1);
  for (int i = 0; i < 200; ++i) {
    Sent changed = sent;
    changed.payload[generator() % changed.payload.size()] ^= static_cast<std::byte>(1 << generator() % 8);
    try {
      decode(changed.message());
    } catch (const Error&) {
    }
  }
}

TEST(Atomo, ExpectsTheBytesOfItsBudget) {
  EXPECT_EQ(payload_bytes(AtomoOptions{.budget = 2}, {{24, 30}}, 4), 2u * 4 * (24 + 30 + 1));
  EXPECT_EQ(payload_bytes(AtomoOptions{.budget = 99}, {{24, 30}}, 4), 24u * 4 * (24 + 30 + 1));
}

}  // namespace
}  // namespace accordion
