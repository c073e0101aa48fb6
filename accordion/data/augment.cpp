#include "accordion/data/augment.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <string>

#include "accordion/base/error.h"
#include "accordion/data/draws.h"

namespace accordion {

Placement place(const Augmentation& augmentation, std::uint64_t seed, int epoch, std::uint32_t sample) {
  Draws draws(Hash()
                  .add("augment")
                  .add(seed)
                  .add(static_cast<std::uint64_t>(epoch))
                  .add(std::uint64_t{sample})
                  .value());
  // Every choice is drawn, wanted or not, so that switching one off leaves the others as they were.
  const auto shifts = static_cast<std::uint32_t>(2 * augmentation.pad + 1);
  const std::uint32_t down = draws.below(shifts), right = draws.below(shifts);
  const bool flip = draws.below(2) == 1;
  const double turn = 2 * draws.unit() - 1;
  return {.down = static_cast<int>(down) - augmentation.pad,
          .right = static_cast<int>(right) - augmentation.pad,
          .flip = augmentation.flip && flip,
          .radians = turn * augmentation.rotate_degrees * std::numbers::pi / 180};
}

ImageWriter::ImageWriter(std::span<const float> mean, std::span<const float> deviation)
    : tables_(mean.size()) {
  if (mean.size() != deviation.size())
    throw UsageError("image writer: " + std::to_string(mean.size()) + " means and " +
                     std::to_string(deviation.size()) + " deviations, expected one of each per channel");
  for (std::size_t c = 0; c < tables_.size(); ++c)
    for (int pixel = 0; pixel < 256; ++pixel)
      tables_[c][static_cast<std::size_t>(pixel)] =
          (static_cast<float>(pixel) / 255 - mean[c]) / deviation[c];
}

void ImageWriter::write(const Images& images, std::size_t sample, const Placement& placement,
                        std::span<float> out) const {
  assert(tables_.size() == static_cast<std::size_t>(images.channels) && out.size() == images.image_size());
  const std::uint8_t* in = images.image(sample).data();
  if (placement.radians == 0)
    write_cropped(images, in, placement, out.data());
  else
    write_rotated(images, in, placement, out.data());
}

void ImageWriter::write_cropped(const Images& images, const std::uint8_t* in, const Placement& placement,
                                float* out) const {
  const int height = images.height, width = images.width;
  // Columns of the crop that lie inside the image.
  const int begin = std::clamp(-placement.right, 0, width);
  const int end = std::clamp(width - placement.right, begin, width);
  for (const Table& table : tables_) {
    for (int y = 0; y < height; ++y, out += width) {
      const int from = y + placement.down;
      if (from < 0 || from >= height) {
        std::fill_n(out, width, table[0]);
        continue;
      }
      const std::uint8_t* row = in + from * width;
      if (placement.flip) {
        std::fill(out, out + width - end, table[0]);
        for (int x = begin; x < end; ++x) out[width - 1 - x] = table[row[x + placement.right]];
        std::fill(out + width - begin, out + width, table[0]);
      } else {
        std::fill(out, out + begin, table[0]);
        for (int x = begin; x < end; ++x) out[x] = table[row[x + placement.right]];
        std::fill(out + end, out + width, table[0]);
      }
    }
    in += height * width;
  }
}

void ImageWriter::write_rotated(const Images& images, const std::uint8_t* in, const Placement& placement,
                                float* out) const {
  const int height = images.height, width = images.width, plane = height * width;
  const double cosine = std::cos(placement.radians), sine = std::sin(placement.radians);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x, ++out) {
      // From the pixel's centre back to where it came from, then through flip and crop. What the crop cut off
      // stays black even if the image had something there.
      const double dx = x + 0.5 - 0.5 * width, dy = y + 0.5 - 0.5 * height;
      int column = static_cast<int>(std::floor(cosine * dx + sine * dy + 0.5 * width));
      int row = static_cast<int>(std::floor(-sine * dx + cosine * dy + 0.5 * height));
      bool inside = 0 <= column && column < width && 0 <= row && row < height;
      column = (placement.flip ? width - 1 - column : column) + placement.right;
      row += placement.down;
      inside = inside && 0 <= column && column < width && 0 <= row && row < height;
      for (std::size_t c = 0; c < tables_.size(); ++c) {
        const std::size_t channel = c * static_cast<std::size_t>(plane);
        out[channel] = tables_[c][inside ? in[channel + static_cast<std::size_t>(row * width + column)] : 0];
      }
    }
  }
}

}  // namespace accordion
