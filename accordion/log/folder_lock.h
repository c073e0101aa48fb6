// A folder that one process writes, and that no other shall write meanwhile.
#pragma once

#include <filesystem>

#include "accordion/base/unique_fd.h"

namespace accordion {

// Of a folder that is there. It is free again when what is returned, or this process, is gone, however that ends.
// Throws UsageError where another one has it. A file system without locks, as some shared ones are, guards against nothing.
UniqueFd lock_folder(const std::filesystem::path& folder);

}  // namespace accordion
