// What an epoch was: what was sent, how well that was hidden, which levels there were and why.
#pragma once

#include <optional>
#include <vector>

#include "accordion/exchange/traffic.h"
#include "accordion/log/epoch_record.h"

namespace accordion {

// How well communication hid behind backward.
struct Overlap {
  double busy_seconds = 0;     // In exchange.
  double exposed_seconds = 0;  // Of these, after backward had handed over its last bucket.

  double hidden_share() const { return busy_seconds > 0 ? 1 - exposed_seconds / busy_seconds : 1; }
};

// What an epoch leaves behind.
struct EpochReport {
  int epoch = 0;
  EpochStats stats = {};
  Overlap overlap = {};
  // Rank 0's: the layers in the epoch, or in the last window that has ended, and the windows that ended in it,
  // where windows are not epochs.
  std::vector<LayerRecord> layers = {};
  std::vector<WindowRecord> windows = {};
  std::vector<GuardEvent> guard = {};
  std::optional<StepSplit> step_split = {};
};

// As the record has it; what the engine does not know is for the caller to add.
EpochRecord to_record(EpochReport report);

}  // namespace accordion
