#include "accordion/data/cifar_png.h"

#include <png.h>

#include <fstream>
#include <string>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/base/read_file.h"
#include "accordion/data/cifar.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPlane = std::size_t{kCifarSide} * kCifarSide;
constexpr std::size_t kBatch = 10000;

// Frees what libpng holds, also when reading fails half way.
struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(this); }
};

std::vector<std::uint8_t> read_rows(const fs::path& file, std::size_t rows) {
  PngImage image;
  if (png_image_begin_read_from_file(&image, file.c_str()) == 0)
    throw Error(file.string() + ": " + image.message);
  if (image.width != kPlane || image.height != rows)
    throw Error(file.string() + ": " + std::to_string(image.width) + " x " + std::to_string(image.height) +
                " pixels, expected " + std::to_string(kPlane) + " x " + std::to_string(rows));
  image.format = PNG_FORMAT_RGB;
  std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr) == 0)
    throw Error(file.string() + ": " + image.message);
  return pixels;
}

std::vector<std::uint8_t> read_labels(const fs::path& file, std::size_t count) {
  std::vector<std::uint8_t> labels;
  read_value(parse_json(read_file(file, kMostJsonBytes), file.string()), file.string() + ": a label", labels);
  if (labels.size() != count)
    throw Error(file.string() + ": " + std::to_string(labels.size()) + " labels, expected " +
                std::to_string(count));
  return labels;
}

}  // namespace

void convert_cifar_png(const fs::path& png, std::span<const std::uint8_t> labels, const fs::path& out_file) {
  const std::vector<std::uint8_t> rows = read_rows(png, labels.size());
  std::vector<std::uint8_t> records;
  records.reserve(labels.size() * (1 + kCifarChannels * kPlane));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    records.push_back(labels[i]);
    const std::uint8_t* row = rows.data() + i * kCifarChannels * kPlane;
    for (std::size_t c = 0; c < kCifarChannels; ++c)
      for (std::size_t p = 0; p < kPlane; ++p) records.push_back(row[p * kCifarChannels + c]);
  }
  std::ofstream out(out_file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(records.data()), static_cast<std::streamsize>(records.size()));
  out.close();
  if (!out) throw Error(out_file.string() + ": cannot write " + std::to_string(records.size()) + " bytes");
}

void convert_cifar10_package(const fs::path& package, const fs::path& out_folder) {
  // "lables" is how the package spells them.
  const std::vector<std::uint8_t> train = read_labels(package / "train_lables.json", 5 * kBatch);
  for (std::size_t i = 0; i < 5; ++i) {
    const std::string name = "data_batch_" + std::to_string(i + 1);
    convert_cifar_png(package / (name + ".png"), std::span(train).subspan(i * kBatch, kBatch),
                      out_folder / (name + ".bin"));
  }
  convert_cifar_png(package / "test_batch.png", read_labels(package / "test_lables.json", kBatch),
                    out_folder / "test_batch.bin");
}

}  // namespace accordion
