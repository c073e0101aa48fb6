// The command line that would repeat a recorded run.
#pragma once

#include <string>

#include "accordion/base/json_fwd.h"

namespace accordion::cli {

// From its config.json, with the options that are not the usual ones. Empty where `train` did not start it, or the record does
// not say.
std::string run_command(const Json& config);

}  // namespace accordion::cli
