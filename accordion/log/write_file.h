// Files that are whole at every moment, even when the disk fills up or the machine stops. All throw Error
// naming file, operation and the system's reason.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace accordion {

// Writes under a temporary name beside the file, then renames: readers see the old file or the new one.
void write_whole(const std::filesystem::path& path, std::string_view text);
// The same, of pieces one after the other.
void write_whole(const std::filesystem::path& path, std::span<const std::string_view> pieces);

// Has the names in a folder on disk, as far as the system lets us.
void sync_folder(const std::filesystem::path& folder);

// Adds one line (given without newline) and has it on disk before it returns. When that fails, the file is
// cut back to the lines it had. A line cut short by an earlier crash is removed first.
void append_line(const std::filesystem::path& path, std::string_view line);

}  // namespace accordion
