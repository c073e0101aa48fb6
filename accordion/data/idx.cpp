#include "accordion/data/idx.h"

#include <array>
#include <cstdio>
#include <string>

#include "accordion/base/error.h"
#include "accordion/data/byte_file.h"

namespace accordion {
namespace {

constexpr std::uint32_t kLargestSide = 4096;

std::string hex(std::uint32_t value) {
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), "0x%08x", value);
  return text.data();
}

void expect_magic(ByteFile& file, std::uint32_t expected, const std::string& kind) {
  const std::uint32_t magic = file.read_u32("magic number");
  if (magic != expected)
    file.fail(0, "magic number " + hex(magic) + ", expected " + hex(expected) + " (IDX " + kind + ")");
}

std::uint32_t read_dimension(ByteFile& file, const std::string& what, std::uint32_t largest) {
  const std::uint64_t at = file.offset();
  const std::uint32_t value = file.read_u32(what);
  if (value == 0 || value > largest)
    file.fail(at, what + " " + std::to_string(value) + ", expected 1 to " + std::to_string(largest));
  return value;
}

void check_size(const std::string& name, const std::filesystem::path& file, const Images& images,
                const ImageShape& expected) {
  if (images.height != expected.height || images.width != expected.width)
    throw Error(name + ": images in " + file.string() + " are " + std::to_string(images.height) + " x " +
                std::to_string(images.width) + ", expected " + std::to_string(expected.height) + " x " +
                std::to_string(expected.width));
}

}  // namespace

Images read_idx(const std::filesystem::path& images_file, const std::filesystem::path& labels_file,
                int classes) {
  ByteFile pixels(images_file), labels(labels_file);
  expect_magic(pixels, 0x803, "images");
  const std::uint32_t count = read_dimension(pixels, "image count", UINT32_MAX);
  const std::uint32_t height = read_dimension(pixels, "height", kLargestSide);
  const std::uint32_t width = read_dimension(pixels, "width", kLargestSide);
  expect_magic(labels, 0x801, "labels");
  const std::uint32_t label_count = read_dimension(labels, "label count", UINT32_MAX);
  if (label_count != count)
    labels.fail(4, std::to_string(label_count) + " labels, expected " + std::to_string(count) +
                       " as there are images in " + images_file.string());

  Images result{.channels = 1,
                .height = static_cast<int>(height),
                .width = static_cast<int>(width),
                .classes = classes,
                .pixels = {},
                .labels = {}};
  const std::uint64_t labels_at = labels.offset();
  result.labels = labels.read(count, "labels");
  labels.expect_end("last label");
  for (std::size_t i = 0; i < count; ++i)
    if (result.labels[i] >= classes)
      labels.fail(labels_at + i, "label " + std::to_string(result.labels[i]) + ", expected 0 to " +
                                     std::to_string(classes - 1));
  result.pixels = pixels.read(std::uint64_t{count} * height * width, "pixels");
  pixels.expect_end("last image");
  return result;
}

ImageSet read_idx_set(const std::string& name, const std::vector<std::filesystem::path>& files,
                      const ImageShape& expected, float mean, float deviation) {
  ImageSet set{.train = read_idx(files[0], files[1], expected.classes),
               .test = read_idx(files[2], files[3], expected.classes),
               .mean = {mean},
               .deviation = {deviation}};
  check_size(name, files[0], set.train, expected);
  check_size(name, files[2], set.test, expected);
  return set;
}

}  // namespace accordion
