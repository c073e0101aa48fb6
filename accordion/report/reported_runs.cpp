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

fs::path whole_path(const fs::path& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

// The folder of a run, or that of the setting which it is in: the last part is the setting's name.
fs::path place_of(const fs::path& run) {
  const fs::path path = whole_path(run);
  return path.filename().string().starts_with("seed-") ? path.parent_path() : path;
}

// Settings of one name get the folders above them to it, as many as tell them apart: "a/run" and "b/run".
void tell_apart(std::vector<ReportedSetting>& settings, std::vector<fs::path> places) {
  for (bool longer = true; longer;) {
    longer = false;
    std::map<std::string, int> count;
    for (const ReportedSetting& setting : settings) ++count[setting.name];
    for (std::size_t i = 0; i < settings.size(); ++i) {
      const fs::path above = places[i].parent_path();
      if (count[settings[i].name] < 2 || !above.has_filename()) continue;
      settings[i].name = above.filename().string() + "/" + settings[i].name;
      places[i] = above;
      longer = true;
    }
  }
}

bool is_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kConfigFile, ignored);
}

void add_comparison(const fs::path& folder, const ComparisonFolder& comparison, ReportedRuns& to,
                    std::vector<fs::path>& places) {
  to.comparisons.emplace_back(folder, comparison);
  for (const ComparisonFolder::Setting& setting : comparison.settings) {
    ReportedSetting& added = to.settings.emplace_back();
    added.name = setting.name;
    places.push_back(whole_path(folder) / setting.folder);
    for (const std::int64_t seed : comparison.seeds) {
      const fs::path run = folder / setting.folder / seed_folder(seed);
      if (is_run(run)) {
        added.runs.push_back(read_reported(run));
      } else {
        to.problems.push_back(setting.name + ", seed " + std::to_string(seed) + ": has not run yet");
        ++to.to_come;
      }
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

bool ReportedRuns::over() const {
  bool any = false;
  for (const ReportedSetting& setting : settings)
    for (const ReportedRun& run : setting.runs) {
      if (!run.summary) return false;
      any = true;
    }
  return any && to_come == 0;
}

ReportedRuns read_reported_runs(const std::vector<fs::path>& folders) {
  ReportedRuns reported;
  std::vector<fs::path> places;              // Of the settings.
  std::map<std::string, std::size_t> known;  // A setting's options, and its place.
  for (const fs::path& folder : folders) {
    if (!is_run(folder)) {
      if (const auto comparison = read_comparison_folder(folder)) {
        add_comparison(folder, *comparison, reported, places);
        continue;
      }
      throw UsageError("report: " + folder.string() + ", expected the folder of a run (with " + kConfigFile +
                       ") or of a comparison (with " + kComparisonFile + ")");
    }
    ReportedRun run = read_reported(folder);
    const auto [place, is_new] = known.try_emplace(
        setting_options(run).dump(-1, ' ', false, Json::error_handler_t::replace), reported.settings.size());
    if (is_new) {
      places.push_back(place_of(folder));
      reported.settings.push_back({.name = places.back().filename().string(), .runs = {}});
    }
    reported.settings[place->second].runs.push_back(std::move(run));
  }
  tell_apart(reported.settings, std::move(places));
  return reported;
}

}  // namespace accordion
