// The runs that a report is about, settled into settings, and read as far as they can be.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accordion/base/json.h"
#include "accordion/log/epoch_record.h"
#include "accordion/report/comparison.h"
#include "accordion/report/comparison_folder.h"

namespace accordion {

struct ReportedRun {
  std::filesystem::path folder;
  Json config = Json::object();
  std::vector<EpochRecord> epochs = {};
  std::optional<Json> summary = {};
  std::vector<std::string> problems = {};  // What could not be read, in whole sentences.

  std::int64_t seed() const;
  std::string status() const;               // "finished", "failed", "interrupted", or "running or cut short".
  std::optional<RunResult> result() const;  // Of a run that finished and was tested.
};

struct ReportedSetting {
  std::string name;  // Unlike all others, as far as folders can tell them apart.
  std::vector<ReportedRun> runs;
};

struct ReportedRuns {
  std::vector<ReportedSetting> settings;
  std::vector<std::string> problems = {};
  int to_come = 0;  // Runs of a comparison that are not there yet; `problems` names them.
  std::vector<std::pair<std::filesystem::path, ComparisonFolder>> comparisons = {};  // By their folders.

  // Whether every run has ended, and there is one, and none of a comparison is still to come.
  bool over() const;
  // None where no run has a result, or results are of different kinds.
  std::optional<Comparison> comparison() const;
};

// Of run folders, and folders of comparisons. Run folders that differ in nothing but the seed are one setting. Throws
// UsageError for what is neither.
ReportedRuns read_reported_runs(const std::vector<std::filesystem::path>& folders);

}  // namespace accordion
