// The command lines that would repeat a recorded run, and a comparison.
#pragma once

#include <filesystem>
#include <string>

#include "accordion/base/json_fwd.h"
#include "accordion/report/comparison_folder.h"

namespace accordion::cli {

// From its config.json, with the options that are not the usual ones. Empty where `train` did not start it, or the record does
// not say.
std::string run_command(const Json& config);

// From its comparison.json. Empty where that names no recipe.
std::string compare_command(const std::filesystem::path& folder, const ComparisonFolder& comparison);

}  // namespace accordion::cli
