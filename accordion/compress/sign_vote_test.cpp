#include "accordion/compress/sign_vote.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "accordion/compress/codec_testing.h"

namespace accordion {
namespace {

Vector vote(const std::vector<Vector>& inputs) {
  const std::size_t n = inputs[0].size();
  const Context context{.world = static_cast<int>(inputs.size())};
  const auto codec = make(SignVoteOptions{}, flat(n));
  std::vector<Bytes> sent;
  std::vector<Message> messages;
  for (const Vector& a : inputs) {
    sent.emplace_back(codec->round(0, context).max_bytes);
    const Encoded encoded = codec->encode(0, context, {a, {}, {}}, sent.back());
    EXPECT_EQ(encoded.bytes, (n + 31) / 32 * 4);
    EXPECT_EQ(encoded.bytes, payload_bytes(SignVoteOptions{}, flat(n), context.world));
    EXPECT_TRUE(encoded.finite);
    messages.push_back({sent.back(), encoded.count, encoded.flags});
  }
  Vector mean(n, NAN);
  codec->decode(0, context, messages, mean);
  return mean;
}

TEST(SignVote, CountsVotes) {
  for (std::size_t n : {0, 1, 31, 32, 33, 300})
    for (unsigned world : {1, 2, 3, 4, 9}) {
      std::vector<Vector> inputs;
      for (unsigned rank = 0; rank < world; ++rank) inputs.push_back(noise(n, rank));
      Vector expected(n);
      for (std::size_t i = 0; i < n; ++i) {
        int count = 0;
        for (const Vector& a : inputs) count += a[i] >= 0 ? 1 : -1;
        expected[i] = static_cast<float>((count > 0) - (count < 0));
      }
      EXPECT_EQ(vote(inputs), expected);

      std::reverse(inputs.begin(), inputs.end());
      for (float& x : inputs[0]) x *= 1e-30f;
      EXPECT_EQ(vote(inputs), expected) << "order or scale matters";
    }
}

TEST(SignVote, ZeroTensorsAbstain) {
  EXPECT_EQ(vote({{0, 0, 0}}), (Vector{0, 0, 0}));
  EXPECT_EQ(vote({{1, -2, -0.0f}, {0, 0, 0}}), (Vector{1, -1, 1}));
  EXPECT_EQ(vote({{1, -2, 3}, {-0.0f, 0, 0}, {-1, -1, 1}}), (Vector{0, -1, 1}));
}

TEST(SignVote, ReportsWhatIsNotFinite) {
  const auto codec = make(SignVoteOptions{}, flat(40));
  for (float odd : {NAN, HUGE_VALF, -HUGE_VALF}) {
    Vector a(40, 1.0f);
    a[39] = odd;
    Bytes out(8);
    EXPECT_FALSE(codec->encode(0, {}, {a, {}, {}}, out).finite);
  }
}

TEST(SignVote, RefusesWrongMessages) {
  const auto codec = make(SignVoteOptions{}, flat(40));
  Vector mean(40);
  const Bytes good(8), small(4), large(12);
  for (const Message& bad : {Message{small}, Message{large}, Message{Bytes()}, Message{good, 0, 2}}) {
    const std::vector<Message> messages = {{.payload = good}, bad};
    EXPECT_THROW(codec->decode(0, {.world = 2}, messages, mean), Error);
  }
}

TEST(SignVote, IgnoresBitsAfterTheLast) {
  const auto codec = make(SignVoteOptions{}, flat(3));
  const Bytes ones(4, std::byte{0xff});
  const std::vector<Message> messages = {{.payload = ones}};
  Vector mean(3);
  codec->decode(0, {}, messages, mean);
  EXPECT_EQ(mean, Vector(3, 1.0f));
}

}  // namespace
}  // namespace accordion
