// A file read from front to end, raw or gzip, that knows where it is: every failure names file and byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

struct gzFile_s;  // zlib's

namespace accordion {

class ByteFile {
 public:
  // A file that unpacks to more than `most` bytes is refused where it does.
  explicit ByteFile(std::filesystem::path path, std::uint64_t most = std::uint64_t{4} << 30);
  ~ByteFile();
  ByteFile(const ByteFile&) = delete;
  ByteFile& operator=(const ByteFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t offset() const { return offset_; }  // counts uncompressed bytes

  // As many bytes as there are, up to the buffer's size.
  std::size_t read_some(std::span<std::uint8_t> buffer);

  // Exactly `count` bytes. Memory grows with what the file turns out to hold, not with what a header
  // promised.
  std::vector<std::uint8_t> read(std::uint64_t count, const std::string& what);

  std::vector<std::uint8_t> read_rest();

  std::uint32_t read_u32(const std::string& what);  // most significant byte first

  // Also makes zlib compare the checksum at a gzip file's end.
  void expect_end(const std::string& after);

  [[noreturn]] void fail(std::uint64_t byte, const std::string& message) const;

 private:
  std::filesystem::path path_;
  std::uint64_t most_;
  gzFile_s* file_;
  std::uint64_t offset_ = 0;
};

}  // namespace accordion
