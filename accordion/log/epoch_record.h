// What a run records of an epoch: one line of epochs.jsonl. Numbers that are not finite (a loss that
// diverged) are null there, and NaN when read back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accordion/base/options.h"

namespace accordion {

struct LayerRecord {
  std::string name;
  double norm = 0;
  int level = 0;  // In force during this epoch.
  std::string codec;
  std::string reason;
};

struct EpochRecord {
  int epoch = 0;
  double lr = 0;
  std::int64_t global_batch = 0;
  double train_loss = 0, test_loss = 0;
  std::optional<double> test_accuracy;    // A fraction. Classifiers have this,
  std::optional<double> test_perplexity;  // language models this.
  double seconds = 0;
  std::int64_t steps = 0;
  std::int64_t dropped_steps = 0;  // In which a rank's gradients were not finite.
  std::uint64_t payload_bytes = 0, wire_bytes = 0, control_bytes = 0;
  std::uint64_t paper_floats = 0;
  double input_wait_seconds = 0;  // Steps that waited for their batch.
  double hidden_share = 0;        // Of communication, behind backward.
  std::vector<LayerRecord> layers;
};

Json to_json(const LayerRecord& layer);
Json to_json(const EpochRecord& record);

// Throw Error naming the key that is missing or of the wrong type. Unknown keys are left alone: a newer
// version may have written them.
void from_json(const Json& json, LayerRecord& layer);
void from_json(const Json& json, EpochRecord& record);

}  // namespace accordion
