#include "accordion/report/reported_runs.h"

#include <map>

#include "accordion/base/error.h"
#include "accordion/log/read_run.h"
#include "accordion/log/run_folder.h"
#include "accordion/report/comparison_folder.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

ReportedRun read_reported(const fs::path& folder) {
  ReportedRun run{.folder = folder};
  Run read = read_run(folder, run.problems);
  run.config = std::move(read.config);
  run.summary = std::move(read.summary);
  for (std::size_t i = 0; i < read.epochs.size(); ++i) try {
      EpochRecord record;
      from_json(read.epochs[i], record);
      run.epochs.push_back(std::move(record));
    } catch (const std::exception& error) {  // Of the record, or of the JSON that it is made of.
      run.problems.push_back((folder / kEpochsFile).string() + ", record " + std::to_string(i + 1) + ": " +
                             error.what());
    }
  return run;
}

// The options as far as they make a setting.
Json setting_options(const ReportedRun& run) {
  Json options = run.config.value("options", Json::object());
  if (options.is_object()) options.erase("seed");
  return Json{{"options", options}, {"workers", run.config.value("workers", Json())}};
}

// The folder's own name, or that of the setting whose folder it is in.
std::string name_of(const fs::path& folder) {
  fs::path path = fs::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string name = path.filename().string();
  return name.starts_with("seed-") ? path.parent_path().filename().string() : name;
}

bool is_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kConfigFile, ignored);
}

void add_comparison(const fs::path& folder, const ComparisonFolder& comparison, ReportedRuns& to) {
  for (const ComparisonFolder::Setting& setting : comparison.settings) {
    ReportedSetting& added = to.settings.emplace_back();
    added.name = setting.name;
    for (const std::int64_t seed : comparison.seeds) {
      const fs::path run = folder / setting.folder / seed_folder(seed);
      if (is_run(run))
        added.runs.push_back(read_reported(run));
      else
        to.problems.push_back(setting.name + ", seed " + std::to_string(seed) + ": has not run yet");
    }
  }
}

}  // namespace

std::int64_t ReportedRun::seed() const {
  const auto options = config.find("options");
  if (options == config.end() || !options->is_object()) return 0;
  const auto seed = options->find("seed");
  return seed != options->end() && seed->is_number_integer() ? seed->get<std::int64_t>() : 0;
}

std::string ReportedRun::status() const {
  if (!summary) return "running or cut short";
  const auto status = summary->find("status");
  return status != summary->end() && status->is_string() ? status->get<std::string>() : "unknown";
}

std::optional<RunResult> ReportedRun::result() const {
  if (status() != "finished" || epochs.empty()) return std::nullopt;
  if (!epochs.back().test_accuracy && !epochs.back().test_perplexity) return std::nullopt;
  return result_of(epochs);
}

std::optional<Comparison> ReportedRuns::comparison() const {
  std::vector<SettingResults> results;
  bool any = false;
  for (const ReportedSetting& setting : settings) {
    SettingResults& to = results.emplace_back();
    to.name = setting.name;
    for (const ReportedRun& run : setting.runs) {
      to.seeds.push_back({.seed = run.seed(), .folder = run.folder.string(), .result = run.result()});
      any = any || to.seeds.back().result;
    }
  }
  if (!any) return std::nullopt;
  try {
    return compare(results);
  } catch (const UsageError&) {  // Accuracies beside perplexities.
    return std::nullopt;
  }
}

ReportedRuns read_reported_runs(const std::vector<fs::path>& folders) {
  ReportedRuns reported;
  std::map<std::string, std::size_t> known;  // A setting's options, and its place.
  for (const fs::path& folder : folders) {
    if (!is_run(folder)) {
      if (const auto comparison = read_comparison_folder(folder)) {
        add_comparison(folder, *comparison, reported);
        continue;
      }
      throw UsageError("report: " + folder.string() + ", expected the folder of a run (with " + kConfigFile +
                       ") or of a comparison (with " + kComparisonFile + ")");
    }
    ReportedRun run = read_reported(folder);
    const auto [place, is_new] = known.try_emplace(
        setting_options(run).dump(-1, ' ', false, Json::error_handler_t::replace), reported.settings.size());
    if (is_new) reported.settings.push_back({.name = name_of(folder), .runs = {}});
    reported.settings[place->second].runs.push_back(std::move(run));
  }
  return reported;
}

}  // namespace accordion
