#include "accordion/data/byte_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "accordion/base/error.h"

namespace accordion {
namespace {

constexpr std::uint64_t kFirstGrowth = 1 << 20;
constexpr unsigned kBuffer = 1 << 18;

}  // namespace

ByteFile::ByteFile(std::filesystem::path path, std::uint64_t most)
    : path_(std::move(path)), most_(most), file_(gzopen(path_.c_str(), "rb")) {
  if (file_ == nullptr) throw Error(path_.string() + ": cannot open: " + std::strerror(errno));
  gzbuffer(file_, kBuffer);
}

ByteFile::~ByteFile() {
  gzclose(file_);
}

std::size_t ByteFile::read_some(std::span<std::uint8_t> buffer) {
  std::size_t got = 0;
  while (got < buffer.size()) {
    const auto wanted = static_cast<unsigned>(std::min<std::size_t>(buffer.size() - got, 1 << 30));
    const int taken = gzread(file_, buffer.data() + got, wanted);
    if (taken > 0) {
      got += static_cast<std::size_t>(taken);
      offset_ += static_cast<std::uint64_t>(taken);
      if (offset_ > most_)
        fail(most_, "more bytes follow, expected a file of at most " + std::to_string(most_));
    }
    if (taken == static_cast<int>(wanted)) continue;
    // A gzip stream that was cut off looks like a plain end of file, except here.
    int code = Z_OK;
    const char* text = gzerror(file_, &code);
    if (code == Z_ERRNO) fail(offset_, std::string("cannot read: ") + std::strerror(errno));
    if (code != Z_OK && code != Z_STREAM_END) fail(offset_, std::string("damaged gzip data: ") + text);
    break;
  }
  return got;
}

std::vector<std::uint8_t> ByteFile::read(std::uint64_t count, const std::string& what) {
  const std::uint64_t begin = offset_;
  if (begin > most_ || count > most_ - begin)
    fail(begin, std::to_string(count) + " bytes of " + what + ", expected a file of at most " +
                    std::to_string(most_));
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < count) {
    const std::size_t have = bytes.size();
    const std::uint64_t more = std::min(count - have, std::max<std::uint64_t>(kFirstGrowth, have));
    bytes.reserve(have + more);  // resize alone may double the capacity
    bytes.resize(have + more);
    if (read_some(std::span(bytes).subspan(have)) < more)
      fail(offset_, "the file ends here, expected " + std::to_string(begin + count) + " bytes or more: the " +
                        what + " is cut short");
  }
  return bytes;
}

std::vector<std::uint8_t> ByteFile::read_rest() {
  std::vector<std::uint8_t> bytes;
  while (true) {
    const std::size_t have = bytes.size();
    bytes.resize(have + std::max<std::size_t>(kFirstGrowth, have));
    const std::size_t got = read_some(std::span(bytes).subspan(have));
    if (have + got == bytes.size()) continue;
    bytes.resize(have + got);
    return bytes;
  }
}

std::uint32_t ByteFile::read_u32(const std::string& what) {
  const std::vector<std::uint8_t> b = read(4, what);
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
}

void ByteFile::expect_end(const std::string& after) {
  const std::uint64_t end = offset_;
  std::uint8_t extra;
  if (read_some({&extra, 1}) != 0)
    fail(end, "more bytes after the " + after + ", expected the end of the file");
}

void ByteFile::fail(std::uint64_t byte, const std::string& message) const {
  throw Error(path_.string() + ": byte " + std::to_string(byte) + ": " + message);
}

}  // namespace accordion
