// Reads a run folder back, also while the run is still going on.
#pragma once

#include <filesystem>
#include <optional>
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

}  // namespace accordion
