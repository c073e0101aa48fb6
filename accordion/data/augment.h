// Random crop, flip and rotation of one image, and its conversion to normalised floats.
//
// The steps are those of the usual recipe: pad with black, crop to the old size, flip left to right, rotate
// about the centre (nearest pixel, black outside), then (pixel / 255 - mean) / deviation. So padding is
// black, not zero.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "accordion/base/options.h"
#include "accordion/data/images.h"

namespace accordion {

struct Augmentation {
  int pad = 0;
  bool flip = false;
  double rotate_degrees = 0;

  void fields(auto&& field) {
    field("pad", pad, "Pixels of padding before the random crop.", at_least(0).up_to(4096));
    field("flip", flip, "Mirror every other image, at random.");
    field("rotate-degrees", rotate_degrees, "Largest random rotation to either side.",
          at_least(0).up_to(180));
  }
};

// What happens to one image. The default leaves it as it is.
struct Placement {
  int down = 0, right = 0;  // pixel (y, x) of the crop is (y + down, x + right) of the image
  bool flip = false;
  double radians = 0;
};

// A function of its arguments only: ranks and their number do not matter.
Placement place(const Augmentation&, std::uint64_t seed, int epoch, std::uint32_t sample);

class ImageWriter {
 public:
  // One mean and deviation per channel, of pixels scaled to [0, 1].
  ImageWriter(std::span<const float> mean, std::span<const float> deviation);

  // Writes image `sample`, channels * height * width floats, to `out`.
  void write(const Images& images, std::size_t sample, const Placement& placement,
             std::span<float> out) const;

 private:
  using Table = std::array<float, 256>;

  void write_cropped(const Images&, const std::uint8_t* in, const Placement&, float* out) const;
  void write_rotated(const Images&, const std::uint8_t* in, const Placement&, float* out) const;

  std::vector<Table> tables_;  // per channel: pixel -> float
};

}  // namespace accordion
