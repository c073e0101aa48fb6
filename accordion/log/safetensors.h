// Arrays by name in one file, in the safetensors format, which Python's library of that name reads too:
//
//   file   := length: u64, header: JSON[length], data
//   header := {"NAME": {"dtype": "F32", "shape": [64, 3], "data_offsets": [begin, end]}, ...}
//
// Offsets count from the beginning of data, which the arrays fill without gaps. Nothing in a file is code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accordion/base/state.h"

namespace accordion {

// A view of somebody's memory.
struct Array {
  std::string dtype;  // "F32", "F64", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};
using Arrays = std::map<std::string, Array, std::less<>>;

// What a file came to.
struct WrittenFile {
  std::uint64_t bytes = 0;
  std::string sha256;
};

// Whole or not at all (write_file.h). Throws Error.
WrittenFile write_safetensors(const std::filesystem::path& path, const Arrays& arrays);

// Views of `file`, whose bytes may be anything: throws Error, led by `name`, for what is not such a file.
Arrays parse_safetensors(std::string_view file, const std::string& name);

// A file's contents, and views of them.
class ArrayFile {
 public:
  // Throws Error when it cannot be read, or is not the file whose size and checksum are given.
  explicit ArrayFile(const std::filesystem::path& path);
  ArrayFile(const std::filesystem::path& path, const WrittenFile& expected);

  const std::filesystem::path& path() const { return path_; }
  const Arrays& arrays() const { return arrays_; }
  const Array& at(std::string_view name) const;  // Throws Error naming the file.

 private:
  std::filesystem::path path_;
  std::string contents_;
  Arrays arrays_;
};

// State (base/state.h) as arrays whose names start with "prefix/": views of `state`; text is an array of U8.
void add_state(const State& state, std::string_view prefix, Arrays& arrays);
State state_of(const Arrays& arrays, std::string_view prefix);

}  // namespace accordion
