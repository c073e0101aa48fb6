// Cuts an epoch into optimizer steps, and a rank's share of each step into micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "accordion/data/order.h"

namespace accordion {

struct Step {
  std::int64_t local_samples;   // of this rank, over all its micro-batches; may be 0 in the last step
  std::int64_t global_samples;  // of all ranks
  int micro_batches;            // at least 1
};

struct EpochPlan {
  std::vector<Step> steps;
  std::vector<Share> micro_batches;  // of all steps, in order

  // The first micro-batch after so many steps.
  std::size_t begin_of(std::int64_t step) const;
};

// `batch` samples a micro-batch, `accumulate` micro-batches a step. The last step takes what is left. A rank
// with nothing left gets one sample of that step all the same, to take part in its collectives, with
// local_samples = 0; or, where that is wished, the last step is left out if it is smaller than the others.
EpochPlan plan_epoch(std::size_t samples, int batch, int accumulate, int rank, int ranks,
                     bool drop_last = false);

// Text: `streams` of each rank, all of them `positions` long and read side by side; a micro-batch is up to
// `window` positions of them. Its shares are of positions; samples are tokens.
EpochPlan plan_text(std::size_t positions, int streams, int window, int accumulate, int ranks,
                    bool drop_last);

}  // namespace accordion
