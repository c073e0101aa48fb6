// The folder of a run: config.json, epochs.jsonl, summary.json, checkpoints/. Written by one process, which locks it; others
// may read it meanwhile.
#pragma once

#include <ctime>
#include <filesystem>
#include <string_view>

#include "accordion/base/json_fwd.h"
#include "accordion/base/unique_fd.h"

namespace accordion {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kEpochsFile = "epochs.jsonl";
inline constexpr const char* kSummaryFile = "summary.json";
inline constexpr const char* kCheckpointsFolder = "checkpoints";
inline constexpr const char* kEventsFile = "events.out.tfevents.accordion";  // Of train --tensorboard.
inline constexpr const char* kTraceFile = "trace.json";                      // Of train --trace.

enum class IfTaken {
  kRefuse,    // A folder that holds a run is a UsageError.
  kContinue,  // Adds to the run there.
  kReplace,   // Removes the run there, and no file that is not a run's.
};

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path, IfTaken if_taken = IfTaken::kRefuse);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / kCheckpointsFolder; }

  void write_config(const Json& config);
  void append_epoch(const Json& record);  // On disk when it returns.
  void write_summary(const Json& summary);

  // For going on from a checkpoint: forgets the epochs after the first `count`, and the summary.
  void keep_epochs(std::size_t count);

 private:
  std::filesystem::path path_;
  UniqueFd lock_;
};

// Creates `base`/DATA-MODEL-YYYYmmdd-HHMMSS (local time), with "-2" and so on where that exists already, and
// returns it: two runs that start in the same second get two folders.
std::filesystem::path make_default_folder(const std::filesystem::path& base, std::string_view data,
                                          std::string_view model, std::time_t now);

}  // namespace accordion
