// One whole run on this rank: meet the others, agree, train, and on rank 0 keep the record.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>

#include "accordion/base/json.h"
#include "accordion/comm/c10d_group.h"
#include "accordion/log/epoch_record.h"
#include "accordion/log/progress.h"
#include "accordion/log/run_folder.h"
#include "accordion/run/checkpoint_clock.h"
#include "accordion/run/options.h"
#include "accordion/run/taken_folder.h"

namespace accordion {

// Where and how a run takes place: nothing here changes its result.
struct RunSetup {
  Rendezvous meeting;
  std::function<Group(const Rendezvous&)> connect = [](const Rendezvous& meeting) {
    return c10d_group(meeting);
  };
  int threads = 1;
  std::filesystem::path data_dir, data_root;  // As load_dataset takes them.
  std::filesystem::path out;                  // Empty: a new folder under runs/.
  IfTaken if_taken = IfTaken::kRefuse;
  Resume resume = Resume::kNo;
  // When checkpoints are written, and how many of them stay.
  CheckpointEvery checkpoint_every = {};
  int keep = 2;
  int check_every = 0;           // Compare replicas after so many steps; 0: after epochs only.
  Json launch = Json::object();  // For the record: how it was started.
  // What the user should know of checkpoints, from rank 0.
  std::function<void(const std::string&)> note = [](const std::string&) {};
  ProgressOptions progress;
  std::ostream* progress_out = nullptr;
  // From on_start on, training asks after every step whether to stop. Before it there is no record to save.
  std::function<void()> on_start = [] {};
  std::function<bool()> stop_requested = [] { return false; };
  // Have one of the last steps explained.
  bool explain_step = false;
  // In the run folder, too: event files for TensorBoard, a trace of one epoch for Perfetto.
  bool tensorboard = false, trace = false;
};

struct RunOutcome {
  bool interrupted = false;
  std::optional<EpochRecord> last;
  std::filesystem::path folder;  // Of rank 0 only.
  Json summary;                  // Of rank 0 only: what summary.json holds.
  std::string explained_step;    // Where that was asked for.
};

RunOutcome run_training(const TrainOptions& options, const RunSetup& setup);

}  // namespace accordion
