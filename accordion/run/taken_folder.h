// What becomes of a run that the folder of another one holds already.
#pragma once

#include <filesystem>

#include "accordion/log/run_folder.h"
#include "accordion/run/options.h"

namespace accordion {

// Whether to go on with the run that the folder holds, from its last checkpoint, or from the beginning where there is none.
enum class Resume {
  kNo,
  kSameRun,  // Only if its options are the same, and its workers; otherwise that is a UsageError, or it is replaced.
  kRegrouped  // Its options are the ones given, but for the number of workers and their batches.
};

bool holds_run(const std::filesystem::path& folder);

// Throws UsageError where it cannot be gone on with, and was not to be replaced.
IfTaken what_becomes_of(const std::filesystem::path& folder, const TrainOptions& options, int workers,
                        Resume resume, IfTaken wish);

}  // namespace accordion
