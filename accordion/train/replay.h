// What another run decided, to be decided again.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "accordion/adapt/control.h"

namespace accordion {

// The options of the run's controller: its levels, its windows, its batch sizes.
ControlOptions replayed_options(const std::filesystem::path& folder);

// Throws UsageError when the run's layers are not these.
std::unique_ptr<Controller> replayed_controller(const std::filesystem::path& folder,
                                                const std::vector<std::string>& layers);

}  // namespace accordion
