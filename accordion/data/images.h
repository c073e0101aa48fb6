// Labelled images as the files hold them: bytes, in NCHW order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace accordion {

struct Images {
  int channels = 0, height = 0, width = 0, classes = 0;
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;  // each below `classes`

  std::size_t size() const { return labels.size(); }
  std::size_t image_size() const { return std::size_t{1} * channels * height * width; }
  std::span<const std::uint8_t> image(std::size_t i) const {
    return std::span(pixels).subspan(i * image_size(), image_size());
  }
};

}  // namespace accordion
