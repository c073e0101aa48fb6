// What a comparison takes from a run's folder: how well it ended, and what that cost.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accordion/base/json.h"
#include "accordion/log/epoch_record.h"

namespace accordion {

enum class Metric { kAccuracy, kPerplexity };

struct RunResult {
  Metric metric = Metric::kAccuracy;
  double value = 0;                       // After the last epoch; an accuracy is a fraction.
  double seconds = 0;                     // Of the training loop, all epochs.
  std::optional<double> train_loss = {};  // Of the last epoch; none where it is not finite, or was not told.
  std::uint64_t payload_bytes = 0, wire_bytes = 0, paper_floats = 0;  // Of one rank.
};

// Of a run whose last epoch was tested.
RunResult result_of(const std::vector<EpochRecord>& epochs);

// Throws Error naming the folder when its record cannot be read, or has no epoch with a test result.
RunResult read_result(const std::filesystem::path& folder);

// What would run, as a run's config.json has it.
struct RunPlan {
  Json options;
  int workers = 1;
  std::optional<int> threads = {};  // None: as many as the cores allow, whatever that was.
};

// The first thing in which a recorded run, as its config.json has it, differs from the plan, or empty.
std::string difference(const Json& config, const RunPlan& plan);

// Empty when the folder holds a finished run of this very plan. Else why it does not: "there is none",
// "it was interrupted", "epochs was 2 and is 3".
std::string why_not_finished(const std::filesystem::path& folder, const RunPlan& plan);

}  // namespace accordion
