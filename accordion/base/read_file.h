// A whole file in memory, if it is of a size that such a file can have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

namespace accordion {

// Reads little further than `most` bytes, whatever the path names: it may be a pipe, or have no end. Throws Error naming the
// file and the system's reason.
std::string read_file(const std::filesystem::path& path,
                      std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

}  // namespace accordion
