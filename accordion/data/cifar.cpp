#include "accordion/data/cifar.h"

#include <array>
#include <string>

#include "accordion/data/byte_file.h"

namespace accordion {
namespace {

constexpr std::size_t kPixels = std::size_t{kCifarChannels} * kCifarSide * kCifarSide;

// `limits`: one label byte each, with the number of its classes. The last is the label that counts.
void append_records(const std::filesystem::path& path, std::span<const int> limits, Images& images) {
  ByteFile file(path);
  const std::size_t record_bytes = limits.size() + kPixels;
  std::vector<std::uint8_t> record(record_bytes);
  while (true) {
    const std::uint64_t begin = file.offset();
    const std::size_t got = file.read_some(record);
    if (got == 0 && begin > 0) return;
    if (got < record_bytes)
      file.fail(file.offset(), "the file ends here, " + std::to_string(got) + " bytes into record " +
                                   std::to_string(begin / record_bytes) + ", expected whole records of " +
                                   std::to_string(record_bytes) + " bytes");
    for (std::size_t i = 0; i < limits.size(); ++i)
      if (record[i] >= limits[i])
        file.fail(begin + i,
                  "label " + std::to_string(record[i]) + ", expected 0 to " + std::to_string(limits[i] - 1));
    images.labels.push_back(record[limits.size() - 1]);
    images.pixels.insert(images.pixels.end(), record.end() - kPixels, record.end());
  }
}

Images empty_images(int classes) {
  return {.channels = kCifarChannels,
          .height = kCifarSide,
          .width = kCifarSide,
          .classes = classes,
          .pixels = {},
          .labels = {}};
}

}  // namespace

Images read_cifar10(const std::vector<std::filesystem::path>& files) {
  Images images = empty_images(10);
  for (const auto& file : files) append_records(file, std::array{10}, images);
  return images;
}

Images read_cifar100(const std::filesystem::path& file) {
  Images images = empty_images(100);
  append_records(file, std::array{20, 100}, images);
  return images;
}

}  // namespace accordion
