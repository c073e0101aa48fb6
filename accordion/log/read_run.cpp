#include "accordion/log/read_run.h"

#include <string>
#include <system_error>

#include "accordion/base/json.h"
#include "accordion/base/read_file.h"
#include "accordion/log/run_folder.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRecordBytes = std::size_t{1}
                                         << 30;  // Of all epochs; of one, what parse_json takes.

Json read_object(const fs::path& path) {
  return parse_json_object(read_file(path, kMostJsonBytes), path.string());
}

// Reads what `read` gives into `to`; what it throws goes to `problems`, where there are any.
template <class Value, class Read>
void try_to(Value& to, std::vector<std::string>* problems, Read read) {
  try {
    to = read();
  } catch (const Error& error) {
    if (!problems) throw;
    problems->push_back(error.what());
  }
}

void read_epochs(const fs::path& path, std::vector<Json>& epochs, std::vector<std::string>* problems) {
  std::string text;
  try_to(text, problems, [&] { return read_file(path, kMostRecordBytes); });
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const std::string where = path.string() + ", line " + std::to_string(number);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    const bool cut_short = end == std::string_view::npos && !Json::accept(line);
    if (cut_short && problems) problems->push_back(where + ": cut short, or being written");
    if (line.empty() || cut_short) continue;
    Json epoch;
    try_to(epoch, problems, [&] { return parse_json_object(line, where); });
    if (!epoch.is_null()) epochs.push_back(std::move(epoch));
  }
}

Run read(const fs::path& folder, std::vector<std::string>* problems) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw UsageError(folder.string() + " is not a folder, expected a run's");
  if (!fs::exists(folder / kConfigFile, ignored))
    throw UsageError(folder.string() + " is not a run's folder: it has no " + kConfigFile);
  Run run;
  run.config = Json::object();
  try_to(run.config, problems, [&] { return read_object(folder / kConfigFile); });
  if (fs::exists(folder / kSummaryFile, ignored))
    try_to(run.summary, problems, [&] { return read_object(folder / kSummaryFile); });
  if (fs::exists(folder / kEpochsFile, ignored)) read_epochs(folder / kEpochsFile, run.epochs, problems);
  return run;
}

}  // namespace

Run read_run(const fs::path& folder) {
  return read(folder, nullptr);
}

Run read_run(const fs::path& folder, std::vector<std::string>& problems) {
  return read(folder, &problems);
}

}  // namespace accordion
