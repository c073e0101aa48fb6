// Recorded norms and learning rates through a controller.
#pragma once

#include <string>
#include <vector>

#include "accordion/adapt/controller.h"
#include "accordion/log/windows.h"

namespace accordion {

// The decision in force during each window. Throws UsageError for a record that lacks what the controller, `who`, needs, or
// that has it for another number of levels.
std::vector<Decision> decide_again(const std::vector<RecordedWindow>& windows, Controller& controller,
                                   std::size_t levels, const std::string& who);

}  // namespace accordion
