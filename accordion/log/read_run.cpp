#include "accordion/log/read_run.h"

#include <string>
#include <system_error>

#include "accordion/base/json.h"
#include "accordion/log/read_file.h"
#include "accordion/log/run_folder.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

Json parse_object(std::string_view text, const std::string& where) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error(where + ": not JSON: " + error.what());
  }
  if (!json.is_object()) throw Error(where + ": expected a JSON object, found " + json.type_name());
  return json;
}

Json read_object(const fs::path& path) {
  return parse_object(read_file(path), path.string());
}

}  // namespace

Run read_run(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw UsageError(folder.string() + " is not a folder, expected a run's");
  if (!fs::exists(folder / kConfigFile, ignored))
    throw UsageError(folder.string() + " is not a run's folder: it has no " + kConfigFile);
  Run run;
  run.config = read_object(folder / kConfigFile);
  if (fs::exists(folder / kSummaryFile, ignored)) run.summary = read_object(folder / kSummaryFile);

  const fs::path path = folder / kEpochsFile;
  if (!fs::exists(path, ignored)) return run;
  const std::string text = read_file(path);
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    const bool cut_short = end == std::string_view::npos && !Json::accept(line);
    if (line.empty() || cut_short) continue;
    run.epochs.push_back(parse_object(line, path.string() + ", line " + std::to_string(number)));
  }
  return run;
}

}  // namespace accordion
