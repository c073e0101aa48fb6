// Images, each with the class it belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace accordion {

class Hash;

// What a model is shown, and asked for: which of `classes` an image belongs to.
struct ImageShape {
  static constexpr std::string_view kKind = "images", kSamples = "images", kUnit = "img";
  static constexpr bool kByPerplexity = false;  // Rather than by accuracy.
  static constexpr bool kInWindows = false;     // Whether a sample of a batch is a stream's window.
  int channels, height, width, classes;

  int choices() const { return classes; }
};

// As the files hold them: bytes, in NCHW order.
struct Images {
  int channels = 0, height = 0, width = 0, classes = 0;
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;  // each below `classes`

  std::size_t size() const { return labels.size(); }
  std::size_t image_size() const { return std::size_t{1} * channels * height * width; }
  std::span<const std::uint8_t> image(std::size_t i) const {
    return std::span(pixels).subspan(i * image_size(), image_size());
  }
  void resize(std::size_t count);
};

struct ImageSet {
  Images train, test;
  std::vector<float> mean, deviation;  // per channel, of pixels scaled to [0, 1]

  ImageShape shape() const { return {train.channels, train.height, train.width, train.classes}; }
  void add_to(Hash& hash) const;
};

}  // namespace accordion
