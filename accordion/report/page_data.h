// What a page shows, as the JSON that its script reads. Everything in it is plain text and numbers: the page makes no markup of
// it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "accordion/base/json_fwd.h"
#include "accordion/report/reported_runs.h"

namespace accordion {

// The command lines that would repeat a run, from its config.json, and a comparison; empty where they are not known.
struct Commands {
  std::function<std::string(const Json& config)> run;
  std::function<std::string(const std::filesystem::path& folder, const ComparisonFolder&)> comparison;
};

Json page_data(const ReportedRuns& reported, const Commands& commands);

}  // namespace accordion
