// What the options of a run ask of its data.
#pragma once

#include <cstdint>
#include <filesystem>

#include "accordion/data/dataset.h"
#include "accordion/run/options.h"

namespace accordion {

// The steps of an epoch with so many samples (of text: streams' windows) in a step of all workers.
std::int64_t steps_in_epoch(const TrainOptions& options, const DatasetFacts& data, int workers,
                            std::int64_t global_batch);

// Throws UsageError for more samples than there are.
void check_samples(const TrainOptions& options, const DatasetFacts& data);

// Throws UsageError for a model or options that are for another kind of data, and for so little data that an
// epoch would have no step.
void check_data(const TrainOptions& options, const DatasetFacts& data, int workers);

// The data set with as many test samples and words as the options say; folders as load_dataset takes them.
// Throws UsageError for what check_samples refuses.
Dataset load_data(const TrainOptions& options, const std::filesystem::path& data_dir,
                  const std::filesystem::path& data_root);

}  // namespace accordion
