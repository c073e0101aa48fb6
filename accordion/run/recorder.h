// Rank 0's record of a run, complete at every moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accordion/adapt/control.h"
#include "accordion/base/json_fwd.h"
#include "accordion/log/epoch_record.h"
#include "accordion/log/event_file.h"
#include "accordion/log/run_folder.h"

namespace accordion {

// As the system names it.
std::string cpu_model();

// What config.json holds: what ran, with which options, where and since when.
Json run_config(const Json& options, int workers, int threads, const std::string& torch_version);

class Recorder {
 public:
  // Epochs that another process recorded, and that this one goes on from, come first.
  Recorder(RunFolder folder, const ControlOptions& control, const Json& config,
           std::vector<EpochRecord> before = {});

  // Goes on with the folder's own record, whose first `epochs` lines stay.
  Recorder(RunFolder folder, const ControlOptions& control, const Json& config, int epochs);

  // Keeps TensorBoard's event file too, from the first epoch on.
  void write_events();
  void add(const EpochRecord& record);
  // Writes and returns summary.json's contents.
  Json finish(const std::string& status, const std::string& reason = "");

  const std::vector<EpochRecord>& records() const { return records_; }
  const RunFolder& folder() const { return folder_; }

 private:
  ControlOptions control_;
  RunFolder folder_;
  std::optional<EventFile> events_;
  std::vector<EpochRecord> records_;
};

}  // namespace accordion
