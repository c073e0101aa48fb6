#include "accordion/compress/sign_scaled.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "accordion/compress/codec_testing.h"

namespace accordion {
namespace {

// A group's steps, with error feedback.
struct Group {
  std::vector<Vector> residuals;

  Vector step(const std::vector<Vector>& gradients) {
    const std::size_t n = gradients[0].size();
    const Context context{.world = static_cast<int>(gradients.size())};
    residuals.resize(gradients.size(), Vector(n));
    const auto codec = make(SignScaledOptions{}, flat(n));
    std::vector<Bytes> sent;
    std::vector<Message> messages;
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
      sent.emplace_back(codec->round(0, context).max_bytes);
      Vector next(n, NAN);
      const Encoded encoded =
          codec->encode(0, context, {gradients[rank], residuals[rank], next}, sent.back());
      EXPECT_EQ(encoded.bytes, 4 + (n + 31) / 32 * 4);
      EXPECT_EQ(encoded.bytes, payload_bytes(SignScaledOptions{}, flat(n), context.world));
      EXPECT_TRUE(encoded.finite);
      residuals[rank] = next;
      messages.push_back({.payload = sent.back()});
    }
    Vector mean(n, NAN);
    codec->decode(0, context, messages, mean);
    return mean;
  }
};

TEST(SignScaled, ContractsByTheFirstNorm) {
  for (std::size_t n : {1, 31, 32, 33, 1000}) {
    const Vector a = heavy_tailed(n, 1, 1);
    Group group;
    const Vector c = group.step({a});
    double first = 0, second = 0, left = 0;
    for (std::size_t i = 0; i < n; ++i) {
      first += std::fabs(a[i]);
      second += static_cast<double>(a[i]) * a[i];
      left += static_cast<double>(a[i] - c[i]) * (a[i] - c[i]);
      EXPECT_EQ(std::signbit(c[i]), a[i] < 0);
      EXPECT_FLOAT_EQ(group.residuals[0][i], a[i] - c[i]);
    }
    EXPECT_NEAR(left, second - first * first / static_cast<double>(n), 1e-5 * second);
  }
}

TEST(SignScaled, LosesNothing) {
  Group group;
  std::vector<double> in(77), out(77);
  for (unsigned step = 0; step < 50; ++step) {
    const std::vector<Vector> gradients = {heavy_tailed(77, 3 * step, 1), heavy_tailed(77, 3 * step + 1, 1),
                                           heavy_tailed(77, 3 * step + 2, 1)};
    const Vector mean = group.step(gradients);
    for (std::size_t i = 0; i < 77; ++i) {
      out[i] += mean[i];
      for (const Vector& g : gradients) in[i] += g[i] / 3.0;
    }
  }
  for (std::size_t i = 0; i < 77; ++i) {
    for (const Vector& e : group.residuals) out[i] += e[i] / 3.0;
    EXPECT_NEAR(in[i], out[i], 1e-4) << i;
  }
}

TEST(SignScaled, HandlesEdges) {
  EXPECT_EQ(Group().step({Vector(40, 0.0f), Vector(40, -0.0f)}), Vector(40, 0.0f));
  EXPECT_EQ(Group().step({Vector{}}), Vector{});
  EXPECT_EQ(Group().step({Vector(40, 3e38f), Vector(40, 3e38f)}), Vector(40, 3e38f));
  EXPECT_EQ(Group().step({Vector(40, -1e-42f)}), Vector(40, -1e-42f));
  const auto codec = make(SignScaledOptions{}, flat(40));
  for (float odd : {NAN, HUGE_VALF, -HUGE_VALF}) {
    Vector a(40, 1.0f);
    a[33] = odd;
    Bytes out(12);
    EXPECT_FALSE(codec->encode(0, {}, {a, {}, {}}, out).finite);
  }
}

TEST(SignScaled, RefusesWrongMessages) {
  const auto codec = make(SignScaledOptions{}, flat(40));
  Vector mean(40);
  const Bytes good(12);
  std::vector<Bytes> wrong = {Bytes(8), Bytes(16), Bytes()};
  for (float scale : {NAN, HUGE_VALF, -1.0f}) {
    wrong.emplace_back(12);
    std::memcpy(wrong.back().data(), &scale, 4);
  }
  for (const Bytes& bad : wrong) {
    const std::vector<Message> messages = {{.payload = good}, {.payload = bad}};
    EXPECT_THROW(codec->decode(0, {.world = 2}, messages, mean), Error);
  }
}

}  // namespace
}  // namespace accordion
