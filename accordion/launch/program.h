// Runs another program to its end. Its arguments go to it as they are: no shell reads them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace accordion {

// Runs argv[0], found in PATH, in `folder` (ours, if empty), with no input. Throws Error if it cannot be
// started or fails, with the end of what it printed.
void run_program(const std::vector<std::string>& argv, const std::filesystem::path& folder = {});

}  // namespace accordion
