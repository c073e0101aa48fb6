// The two 16-bit codecs differ in range and precision only.
#include "accordion/compress/bf16.h"
#include "accordion/compress/codec_testing.h"
#include "accordion/compress/fp16.h"
#include "accordion/kernels/halves.h"

namespace accordion {
namespace {

using Words = std::span<std::uint16_t>;
using Parts = std::span<const std::uint16_t* const>;

void sum(Fp16Options, Parts parts, Words total) {
  kernels::sum_halves(parts, total);
}
void sum(Bf16Options, Parts parts, Words total) {
  kernels::sum_bfloat16s(parts, total);
}

// Half a unit in the last place, relative to the number.
double precision(Fp16Options) {
  return 0x1p-11;
}
double precision(Bf16Options) {
  return 0x1p-8;
}

// A group's steps; the sum is what exchange makes of messages.
template <class Options>
struct Group {
  bool feedback = false;
  std::vector<Vector> residuals = {};
  std::size_t saturated = 0;

  Vector step(const std::vector<Vector>& gradients) {
    const std::size_t n = gradients[0].size();
    const Context context{.world = static_cast<int>(gradients.size())};
    residuals.resize(gradients.size(), Vector());
    const auto codec = make(Options{feedback}, flat(n));
    EXPECT_EQ(codec->wants_feedback(), feedback);
    std::vector<Bytes> sent(gradients.size(), Bytes(codec->round(0, context).max_bytes));
    std::vector<const std::uint16_t*> parts;
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
      residuals[rank].resize(feedback ? n : 0);
      Vector next(residuals[rank].size(), NAN);
      const Encoded encoded = codec->encode(0, context, {gradients[rank], residuals[rank], next}, sent[rank]);
      EXPECT_EQ(encoded.bytes, 2 * n);
      EXPECT_EQ(encoded.bytes, payload_bytes(Options{}, flat(n), context.world));
      EXPECT_TRUE(encoded.finite);
      saturated += encoded.saturated;
      EXPECT_EQ(encoded.count, 0u) << "no entries of a sparse message";
      residuals[rank] = next;
      parts.push_back(reinterpret_cast<const std::uint16_t*>(sent[rank].data()));
    }
    Bytes total(2 * n);
    sum(Options{}, parts, {reinterpret_cast<std::uint16_t*>(total.data()), n});
    const std::vector<Message> messages = {{.payload = total}};
    Vector mean(n, NAN);
    codec->decode(0, context, messages, mean);
    return mean;
  }
};

template <class Options>
class SixteenBits : public ::testing::Test {
 protected:
  const double precision_ = precision(Options{});
};
using Both = ::testing::Types<Fp16Options, Bf16Options>;
TYPED_TEST_SUITE(SixteenBits, Both);

TYPED_TEST(SixteenBits, RoundsToNearest) {
  for (std::size_t n : {0, 1, 7, 8, 9, 1000}) {
    const Vector a = noise(n, 1), c = Group<TypeParam>().step({a});
    for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(c[i], a[i], this->precision_ * std::fabs(a[i]) + 0x1p-25);
    EXPECT_EQ(Group<TypeParam>().step({c}), c) << "what can be represented is kept";
  }
}

TYPED_TEST(SixteenBits, SendsTheMean) {
  std::vector<Vector> gradients;
  for (unsigned rank = 0; rank < 3; ++rank) gradients.push_back(noise(100, rank));
  const Vector mean = Group<TypeParam>().step(gradients);
  for (std::size_t i = 0; i < 100; ++i) {
    double right = 0, size = 0;
    for (const Vector& g : gradients) right += g[i] / 3.0, size += std::fabs(g[i]) / 3;
    EXPECT_NEAR(mean[i], right, this->precision_ * 2 * size);
  }
}

TYPED_TEST(SixteenBits, LosesNothingButTheSumsRoundingWithFeedback) {
  Group<TypeParam> group{.feedback = true};
  double in = 0, out = 0;
  for (unsigned step = 0; step < 100; ++step) {
    // One third is never represented, and always rounded to the same side.
    out += group.step({Vector(9, 1.0f / 3), Vector(9, 1.0f / 3)})[5];
    in += 1.0f / 3;
  }
  EXPECT_NEAR(in, out + group.residuals[0][5], 100 * this->precision_ * this->precision_);
}

TYPED_TEST(SixteenBits, ReportsWhatIsNotFinite) {
  const auto codec = make(TypeParam{}, flat(40));
  for (float odd : {NAN, HUGE_VALF, -HUGE_VALF}) {
    Vector a(40, 1.0f);
    a[39] = odd;
    Bytes out(80);
    EXPECT_FALSE(codec->encode(0, {}, {a, {}, {}}, out).finite);
  }
}

TYPED_TEST(SixteenBits, RefusesASumOfTheWrongSize) {
  const auto codec = make(TypeParam{}, flat(40));
  Vector mean(40);
  for (std::size_t bytes : {0, 78, 82}) {
    const Bytes sum(bytes);
    const std::vector<Message> messages = {{.payload = sum}};
    EXPECT_THROW(codec->decode(0, {}, messages, mean), Error);
  }
}

TEST(Fp16, SaturatesAndCounts) {
  Group<Fp16Options> group{.feedback = true};
  const Vector a = {1e5f, -3e6f, 65504, 1};
  EXPECT_EQ(group.step({a}), (Vector{65504, -65504, 65504, 1}));
  EXPECT_EQ(group.saturated, 2u);
  EXPECT_EQ(group.residuals[0], (Vector{1e5f - 65504, 65504 - 3e6f, 0, 0}));
  // A sum of shares that are all the largest has no room either.
  EXPECT_EQ(Group<Fp16Options>().step({Vector(9, 3e5f), Vector(9, 3e5f)}), Vector(9, 65504.0f));
}

TEST(Bf16, KeepsTheRangeOfSinglePrecision) {
  EXPECT_EQ(Group<Bf16Options>().step({Vector(9, 3.4e38f)}), Vector(9, 0x1.fep127f));
  const Vector c = Group<Bf16Options>().step({Vector(9, 1e-40f)});
  EXPECT_NEAR(c[0], 1e-40f, 1e-40);
}

}  // namespace
}  // namespace accordion
