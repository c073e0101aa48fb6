// A whole file in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

namespace accordion {

// Throws Error naming the file and the system's reason, and for more than `most` bytes, of which none are read then.
std::string read_file(const std::filesystem::path& path,
                      std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

}  // namespace accordion
