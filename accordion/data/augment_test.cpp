#include "accordion/data/augment.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numbers>
#include <set>

#include "accordion/data/files_testing.h"

namespace accordion {
namespace {

const std::vector<float> kMean = {0.5f, 0.25f, 0.4f}, kDeviation = {0.25f, 0.5f, 0.3f};

std::vector<float> written(const Images& images, std::size_t sample, const Placement& placement) {
  const auto channels = static_cast<std::size_t>(images.channels);
  std::vector<float> out(images.image_size(), NAN);
  ImageWriter(std::span(kMean).first(channels), std::span(kDeviation).first(channels))
      .write(images, sample, placement, out);
  return out;
}

// One step after the other, each making a whole new image of bytes.
std::vector<float> reference(const Images& images, std::size_t sample, const Placement& placement, int pad) {
  const int height = images.height, width = images.width;
  std::vector<float> out;
  for (int c = 0; c < images.channels; ++c) {
    const auto at = [&](int y, int x) { return static_cast<std::size_t>(y * width + x); };
    const auto channel = images.image(sample).subspan(static_cast<std::size_t>(c * height * width));
    const int padded_width = width + 2 * pad;
    Bytes padded(static_cast<std::size_t>((height + 2 * pad) * padded_width), 0);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        padded[static_cast<std::size_t>((y + pad) * padded_width + x + pad)] = channel[at(y, x)];
    Bytes image(static_cast<std::size_t>(height * width));
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        image[at(y, x)] = padded[static_cast<std::size_t>((y + placement.down + pad) * padded_width + x +
                                                          placement.right + pad)];
    if (placement.flip)
      for (int y = 0; y < height; ++y)
        std::reverse(image.begin() + y * width, image.begin() + (y + 1) * width);
    if (placement.radians != 0) {
      Bytes turned(image.size(), 0);
      const double cosine = std::cos(placement.radians), sine = std::sin(placement.radians);
      const double middle_x = width / 2.0, middle_y = height / 2.0;
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
          const double dx = x + 0.5 - middle_x, dy = y + 0.5 - middle_y;
          const double from_x = std::floor(cosine * dx + sine * dy + middle_x);
          const double from_y = std::floor(-sine * dx + cosine * dy + middle_y);
          if (from_x >= 0 && from_x < width && from_y >= 0 && from_y < height)
            turned[at(y, x)] = image[at(static_cast<int>(from_y), static_cast<int>(from_x))];
        }
      image = turned;
    }
    const auto i = static_cast<std::size_t>(c);
    for (std::uint8_t pixel : image)
      out.push_back((static_cast<float>(pixel) / 255 - kMean[i]) / kDeviation[i]);
  }
  return out;
}

RC_GTEST_PROP(ImageWriter, MatchesTheReference, ()) {
  const Images images = random_images(*rc::gen::element(1, 3), *rc::gen::inRange(1, 12),
                                      *rc::gen::inRange(1, 12), 3, *rc::gen::arbitrary<std::uint64_t>());
  const int pad = *rc::gen::inRange(0, 15);  // may be more than the whole image
  const Placement placement{.down = *rc::gen::inRange(-pad, pad + 1),
                            .right = *rc::gen::inRange(-pad, pad + 1),
                            .flip = *rc::gen::arbitrary<bool>(),
                            .radians = *rc::gen::element(0, 1) * *rc::gen::inRange(-180, 181) * 0.0174};
  const auto sample = *rc::gen::inRange<std::size_t>(0, 3);
  RC_ASSERT(written(images, sample, placement) == reference(images, sample, placement, pad));
}

TEST(ImageWriter, NormalisesEachChannel) {
  const Images images{3, 1, 2, 10, {0, 255, 51, 102, 255, 0}, {0}};
  const std::vector<float> out = written(images, 0, {});
  const std::vector<float> expected = {-2, 2, -0.1f, 0.3f, 2, -4.0f / 3};
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-6);
}

TEST(ImageWriter, PaddingIsBlackNotZero) {
  const Images images{1, 1, 2, 10, {255, 255}, {0}};
  EXPECT_EQ(written(images, 0, {.right = 1}), (std::vector<float>{2, -2}));
  EXPECT_EQ(written(images, 0, {.right = 1, .flip = true}), (std::vector<float>{-2, 2}));
}

TEST(ImageWriter, QuarterTurnIsExact) {
  const Images images{1, 2, 2, 10, {10, 20, 30, 40}, {0}};
  const Images turned{1, 2, 2, 10, {20, 40, 10, 30}, {0}};
  EXPECT_EQ(written(images, 0, {.radians = -std::numbers::pi / 2}), written(turned, 0, {}));
}

TEST(ImageWriter, RefusesUnequalConstants) {
  EXPECT_THROW(ImageWriter(kMean, std::span(kDeviation).first(2)), UsageError);
}

TEST(Place, StaysWithinTheOptionsAndReachesAllOfThem) {
  const Augmentation augmentation{.pad = 2, .flip = true, .rotate_degrees = 15};
  std::set<int> downs, rights;
  std::set<std::pair<int, int>> both;
  int flips = 0;
  double least = 0, most = 0;
  for (std::uint32_t sample = 0; sample < 1000; ++sample) {
    const Placement placement = place(augmentation, 7, 3, sample);
    downs.insert(placement.down);
    rights.insert(placement.right);
    both.insert({placement.down, placement.right});
    flips += placement.flip;
    least = std::min(least, placement.radians);
    most = std::max(most, placement.radians);
  }
  EXPECT_EQ(downs, (std::set{-2, -1, 0, 1, 2}));
  EXPECT_EQ(rights, downs);
  EXPECT_EQ(both.size(), 25u);
  EXPECT_NEAR(flips, 500, 80);
  constexpr double kLimit = 15 * std::numbers::pi / 180;
  EXPECT_TRUE(-kLimit <= least && least < -0.9 * kLimit) << least;
  EXPECT_TRUE(0.9 * kLimit < most && most <= kLimit) << most;
}

TEST(Place, DependsOnSeedEpochAndSample) {
  const Augmentation augmentation{.pad = 1000};
  const auto down = [&](std::uint64_t seed, int epoch, std::uint32_t sample) {
    return place(augmentation, seed, epoch, sample).down;
  };
  EXPECT_EQ(down(1, 2, 3), down(1, 2, 3));
  EXPECT_NE(down(1, 2, 3), down(4, 2, 3));
  EXPECT_NE(down(1, 2, 3), down(1, 4, 3));
  EXPECT_NE(down(1, 2, 3), down(1, 2, 4));
}

TEST(Place, NothingIsAskedForNothingHappens) {
  const Placement placement = place({}, 1, 2, 3);
  EXPECT_EQ(placement.down, 0);
  EXPECT_EQ(placement.right, 0);
  EXPECT_FALSE(placement.flip);
  EXPECT_EQ(placement.radians, 0);
}

TEST(Augmentation, ChecksItsOptions) {
  EXPECT_THROW(check("augmentation", Augmentation{.pad = -1}), UsageError);
  EXPECT_THROW(check("augmentation", Augmentation{.rotate_degrees = 181}), UsageError);
}

}  // namespace
}  // namespace accordion
