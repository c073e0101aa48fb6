// What a controller needs of a run that is over, window by window: a window is an epoch, unless the run
// watched shorter ones.
#pragma once

#include <filesystem>
#include <vector>

#include "accordion/log/epoch_record.h"

namespace accordion {

struct RecordedWindow : WindowRecord {
  std::int64_t global_batch = 0;
  std::string batch_reason;
};

// Of a run folder, from its epochs.jsonl. Windows are whole and in order, each with the same layers.
std::vector<RecordedWindow> read_run_windows(const std::filesystem::path& folder);

// Of a table with the header epoch,layer,norm,lr and one row for each epoch and layer.
std::vector<RecordedWindow> read_csv_windows(const std::filesystem::path& file);

}  // namespace accordion
