// Reads a run folder back, also while the run is still going on.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accordion/base/json.h"

namespace accordion {

struct Run {
  Json config;
  std::vector<Json> epochs;
  std::optional<Json> summary;  // A run that was cut short has none.
};

// A last line without its newline was cut short by a crash, or is being written: it does not count unless it
// is whole. Anything else that cannot be read is an Error naming file and line.
Run read_run(const std::filesystem::path& folder);

// The same for who would rather show the rest: what cannot be read, a last line that was cut short too, is left out
// and told in `problems`.
Run read_run(const std::filesystem::path& folder, std::vector<std::string>& problems);

}  // namespace accordion
