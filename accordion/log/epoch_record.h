// What a run records of an epoch: one line of epochs.jsonl. Numbers that are not finite (a loss that
// diverged) are null there, and NaN when read back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accordion/base/json_fwd.h"
#include "accordion/log/guard_event.h"

namespace accordion {

struct LayerRecord {
  std::string name;
  std::int64_t elements = 0;
  double norm = 0;  // Of the gradient summed over the window.
  int level = 0;    // In force during it; -1: dense, by the guard.
  std::string codec = {};
  std::string reason = {};
  std::optional<int> may = {};  // The controller's, where there is a guard.
  // What one rank contributed for it in the epoch; none in the layers of a window.
  std::optional<std::int64_t> payload_bytes = {};
  // What some controllers ask for beside the norm: the sum of each step's squared norm, and what each level
  // would have lost (a squared norm) and sent (bytes).
  std::optional<double> squares = {};
  std::vector<double> level_errors = {}, level_bytes = {};
};

// A step's milliseconds on rank 0, in the mean over those of an epoch that followed another one. They add up to the step.
struct StepSplit {
  double compute_ms = 0;  // From the end of the step before until the last gradient is there.
  // What of the exchange goes on after that:
  double encode_ms = 0;     // waiting for a bucket's first messages to be encoded,
  double wire_ms = 0;       // for messages of others,
  double decode_ms = 0;     // and the work between and after messages.
  double busy_wire_ms = 0;  // All of the time in which messages travelled, also behind backward.
};

// What a controller saw and what was in force, where that is not whole epochs.
struct WindowRecord {
  int window = 0;
  double lr = 0;  // Of the schedule, at its first step.
  std::int64_t steps = 0;
  std::vector<LayerRecord> layers;
};

struct EpochRecord {
  int epoch = 0;
  double lr = 0;                           // At the first step.
  std::optional<double> schedule_lr = {};  // Before it was scaled with the batch, where that is controlled.
  std::int64_t global_batch = 0;
  std::optional<std::string> batch_reason = {};
  double train_loss = 0, test_loss = 0;
  std::optional<double> test_accuracy;    // A fraction. Classifiers have this,
  std::optional<double> test_perplexity;  // language models this.
  double seconds = 0;
  std::int64_t steps = 0;
  std::int64_t dropped_steps = 0;  // In which a rank's gradients were not finite.
  std::uint64_t payload_bytes = 0, wire_bytes = 0, control_bytes = 0;
  std::uint64_t sent_bytes = 0;  // Handed to the network since the last record, whatever for.
  std::uint64_t paper_floats = 0;
  std::uint64_t entries = 0;      // Sent in sparse messages.
  std::uint64_t saturated = 0;    // Beyond the range of 16 bits, and sent as its largest.
  double input_wait_seconds = 0;  // Steps that waited for their batch.
  double hidden_share = 0;        // Of communication, behind backward.
  // The rank that the others waited for longest, and how long: what steps would have saved had it been as fast as the next one.
  std::optional<int> waited_for_rank = {};
  std::optional<double> waited_seconds = {};
  std::optional<StepSplit> step_split = {};
  std::optional<double> hessian_eigenvalue = {};
  std::vector<LayerRecord> layers;         // Of the epoch, or of the last window that has ended.
  std::vector<WindowRecord> windows = {};  // That ended in this epoch.
  std::vector<GuardEvent> guard = {};      // What the guard did in it.
};

std::size_t total_elements(const std::vector<LayerRecord>& layers);

Json to_json(const LayerRecord& layer);
Json to_json(const StepSplit& split);
Json to_json(const WindowRecord& window);
Json to_json(const EpochRecord& record);

// Throw Error naming the key that is missing or of the wrong type. Unknown keys are left alone: a newer
// version may have written them.
void from_json(const Json& json, LayerRecord& layer);
void from_json(const Json& json, StepSplit& split);
void from_json(const Json& json, WindowRecord& window);
void from_json(const Json& json, EpochRecord& record);

// Of all lines of `file`'s record.
std::vector<EpochRecord> epoch_records(const std::vector<Json>& lines, const std::string& file);

}  // namespace accordion
