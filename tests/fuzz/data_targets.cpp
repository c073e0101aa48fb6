#include <png.h>
#include <zlib.h>

#include <array>

#include "accordion/data/cifar.h"
#include "accordion/data/cifar_png.h"
#include "accordion/data/idx.h"
#include "accordion/data/speeches.h"
#include "accordion/data/tokens.h"
#include "accordion/data/vocabulary.h"
#include "fuzz/targets.h"

namespace accordion::fuzz {
namespace {

constexpr std::array<std::uint8_t, 2> kLabels = {4, 9};

// Most significant byte first, as in the format.
std::string u32(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// As the package has them: a row an image.
std::string png(std::uint32_t width, std::uint32_t height, std::uint32_t format) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  const std::string pixels(PNG_IMAGE_SIZE(image), '\x42');
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(size, '\0');
  png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr);
  file.resize(size);
  return file;
}

void parse_idx(std::string_view input) {
  const auto files = apart(input, 2);
  read_idx(scratch("images", files[0]), scratch("labels", files[1]), 10);
}

void parse_tokens(std::string_view input) {
  const auto files = apart(input, 2);
  TextSet text = read_tokens(scratch("train", files[0]), scratch("test", files[1]));
  limit_vocabulary(text, kFewestWords);
}

void parse_speeches(std::string_view input) {
  const auto files = apart(input, 3);
  for (std::size_t i = 0; i < files.size(); ++i)
    scratch("package/data/" + std::to_string(i) + ".txt", files[i]);
  const std::filesystem::path out = scratch("out/nothing", "");
  convert_sotu_package(out.parent_path().parent_path() / "package", out.parent_path());
}

}  // namespace

std::vector<Target> data_targets() {
  const std::string images = u32(0x803) + u32(2) + u32(3) + u32(2) + "abcdefghijkl",
                    labels = u32(0x801) + u32(2) + "\1\2";
  const std::string record(3073, '\7'), record100(3074, '\7');
  const std::string words = "the cat <unk> sat\non the mat\n";
  return {
      {"idx", {together({images, labels}), together({gzip(images), gzip(labels)})}, parse_idx},
      {"cifar10", {record, gzip(record + record)}, [](auto in) { read_cifar10({scratch("cifar10", in)}); }},
      {"cifar100", {record100, gzip(record100)}, [](auto in) { read_cifar100(scratch("cifar100", in)); }},
      {"cifar-png",
       {png(1024, 2, PNG_FORMAT_RGB), png(1024, 2, PNG_FORMAT_GRAY), png(1024, 2, PNG_FORMAT_RGBA)},
       [](auto in) { convert_cifar_png(scratch("in.png", in), kLabels, scratch("out.bin", "")); }},
      {"tokens", {together({words, "the dog sat"}), together({gzip(words), words})}, parse_tokens},
      {"speeches",
       {"Mr. Speaker -- we don't owe $3,000.50; \xe2\x80\x9cnot one cent\xe2\x80\x9d!",
        together({"a b c", "a a", "b\n\xc3\xa9"})},
       parse_speeches},
  };
}

}  // namespace accordion::fuzz
