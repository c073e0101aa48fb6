// What a page shows, as the JSON that its script reads. Everything in it is plain text and numbers: the page makes no markup of
// it.
#pragma once

#include <functional>
#include <string>

#include "accordion/base/json_fwd.h"
#include "accordion/report/reported_runs.h"

namespace accordion {

// The command line that would repeat a run, from its config.json; empty where it is not known.
using CommandOf = std::function<std::string(const Json& config)>;

Json page_data(const ReportedRuns& reported, const CommandOf& command);

}  // namespace accordion
