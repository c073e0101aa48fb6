#include "accordion/log/run_folder.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include "accordion/base/json.h"
#include "accordion/log/folder_lock.h"
#include "accordion/log/write_file.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

// Text from outside (a name, a reason) may not be UTF-8; a record with a replacement character beats none.
std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void create(const fs::path& folder) {
  std::error_code error, ignored;
  fs::create_directories(folder, error);
  if (fs::is_directory(folder, ignored)) return;
  throw Error(folder.string() + ": cannot create the folder: " +
              (error ? error : std::make_error_code(std::errc::not_a_directory)).message());
}

// What makes the folder a run's, or nothing.
std::string sign_of_a_run(const fs::path& folder) {
  std::error_code ignored;
  for (const char* name : {kConfigFile, kEpochsFile, kSummaryFile})
    if (fs::exists(folder / name, ignored)) return name;
  const fs::path checkpoints = folder / kCheckpointsFolder;
  return fs::is_directory(checkpoints, ignored) && !fs::is_empty(checkpoints, ignored) ? kCheckpointsFolder
                                                                                       : "";
}

void take_away(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw Error(path.string() + ": cannot remove: " + error.message());
}

}  // namespace

RunFolder::RunFolder(fs::path path, IfTaken if_taken) : path_(std::move(path)) {
  std::error_code ignored;
  if (fs::exists(path_, ignored) && !fs::is_directory(path_, ignored))
    throw UsageError(path_.string() + " is a file, expected a folder for the run");
  const std::string sign = sign_of_a_run(path_);
  if (!sign.empty() && if_taken == IfTaken::kRefuse)
    throw UsageError("the folder " + path_.string() + " holds a run already (" + sign +
                     "); give another with --out, or replace it with --overwrite");
  create(path_);
  lock_ = lock_folder(path_);
  if (!sign.empty() && if_taken == IfTaken::kReplace)
    for (const char* name :
         {kConfigFile, kEpochsFile, kSummaryFile, kCheckpointsFolder, kEventsFile, kTraceFile})
      take_away(path_ / name);
  create(checkpoints());
  // Said now rather than after the first epoch.
  if (::access(path_.c_str(), W_OK | X_OK) != 0)
    throw Error(path_.string() + ": cannot write into the folder: " + std::generic_category().message(errno));
}

void RunFolder::write_config(const Json& config) {
  write_whole(path_ / kConfigFile, text_of(config, 2) + "\n");
  if (!fs::exists(path_ / kEpochsFile)) write_whole(path_ / kEpochsFile, "");  // A record of no epochs yet.
}

void RunFolder::append_epoch(const Json& record) {
  append_line(path_ / kEpochsFile, text_of(record, -1));
}

void RunFolder::write_summary(const Json& summary) {
  write_whole(path_ / kSummaryFile, text_of(summary, 2) + "\n");
}

void RunFolder::keep_epochs(std::size_t count) {
  take_away(path_ / kSummaryFile);
  const fs::path path = path_ / kEpochsFile;
  std::ifstream file(path);
  std::string kept, line;
  std::size_t found = 0;
  while (found < count && std::getline(file, line)) {
    if (line.empty()) continue;
    kept += line + "\n";
    ++found;
  }
  if (found < count)
    throw Error(path.string() + ": has " + std::to_string(found) + " epochs, expected at least " +
                std::to_string(count));
  file.close();
  write_whole(path, kept);
}

fs::path make_default_folder(const fs::path& base, std::string_view data, std::string_view model,
                             std::time_t now) {
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> stamp;
  std::strftime(stamp.data(), stamp.size(), "%Y%m%d-%H%M%S", &local);
  const std::string name = std::string(data) + "-" + std::string(model) + "-" + stamp.data();
  create(base);
  for (int number = 1;; ++number) {
    fs::path path = base / (number == 1 ? name : name + "-" + std::to_string(number));
    std::error_code error;
    if (fs::create_directory(path, error)) return path;
    std::error_code ignored;
    if (error && !fs::exists(path, ignored))
      throw Error(path.string() + ": cannot create the folder: " + error.message());
  }
}

}  // namespace accordion
