// Small data files for the tests of this folder.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/base/temporary_folder.h"
#include "accordion/data/draws.h"
#include "accordion/data/images.h"

namespace accordion {

using Bytes = std::vector<std::uint8_t>;

inline Bytes u32(std::uint32_t value) {
  return {static_cast<std::uint8_t>(value >> 24), static_cast<std::uint8_t>(value >> 16),
          static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value)};
}

inline Bytes join(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

inline Bytes random_bytes(std::size_t count, std::uint64_t seed, std::uint32_t below = 256) {
  Draws draws(seed);
  Bytes bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(draws.below(below));
  return bytes;
}

inline Images random_images(int channels, int height, int width, std::size_t count, std::uint64_t seed) {
  Images images{channels, height, width, 10, {}, random_bytes(count, seed + 1, 10)};
  images.pixels = random_bytes(count * images.image_size(), seed);
  return images;
}

inline void write_file(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline Bytes read_whole(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_gzip(const std::filesystem::path& path, const Bytes& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

inline Bytes idx_images(std::uint32_t count, std::uint32_t height, std::uint32_t width, const Bytes& pixels) {
  return join({u32(0x803), u32(count), u32(height), u32(width), pixels});
}

inline Bytes idx_labels(std::uint32_t count, const Bytes& labels) {
  return join({u32(0x801), u32(count), labels});
}

// What the call says when it throws `Failure`; a test failure if it does not.
template <class Failure = Error, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.what();
  } catch (const std::exception& other) {
    ADD_FAILURE() << "another exception: " << other.what();
    return "";
  }
  ADD_FAILURE() << "no exception";
  return "";
}

class WithFolder : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }

 private:
  TemporaryFolder folder_{std::filesystem::temp_directory_path() / "accordion-data-test-"};
};

}  // namespace accordion
