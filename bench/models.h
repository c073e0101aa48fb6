// A training step of each model, from forward to optimizer, on made-up batches: what an epoch of a data set
// would take on this machine, without having it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accordion/base/json_fwd.h"

namespace accordion::bench {

struct ModelCase {
  std::string model, data;
  int batch = 0;  // Images, streams of text or rows.
};

// A case for each setting, with the data and batch that are usual for its model unless `data` is not empty or
// `batch` not 0. No settings: every model at full size, or those that learn from such data. Throws UsageError
// for what make_model or dataset_facts refuses.
std::vector<ModelCase> model_cases(const std::vector<std::string>& models, const std::string& data,
                                   int batch);

struct ModelBenchOptions {
  int bptt = 30;  // Positions of a window of text.
  int threads = 1;
  double seconds = 5;  // For the timed steps of one model; a step that has begun is finished.
};

struct ModelTiming {
  std::string unit;         // "images", "tokens" or "rows"
  std::optional<int> bptt;  // Of text.
  std::size_t parameters, step_samples, train_samples;
  int steps;
  double step_ms;  // The middle one.

  double samples_per_second() const { return 1000 * static_cast<double>(step_samples) / step_ms; }
  double epoch_seconds() const { return static_cast<double>(train_samples) / samples_per_second(); }
};

// Throws Error when the loss is not finite, and when a parameter has no gradient or one that is not finite.
ModelTiming time_model(const ModelCase& model, const ModelBenchOptions& options);

Json to_json(const ModelCase& model, const ModelBenchOptions& options, const ModelTiming& timing);

}  // namespace accordion::bench
