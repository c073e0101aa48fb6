// What a run will send, from its options alone: no data set, no training.
//
// Where levels or batch sizes depend on gradients, the run's own controller is shown gradients that never
// change: where it is then mild it is mild whatever happens. Everywhere else any level that it has to choose
// from may come.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "accordion/compress/tensor.h"
#include "accordion/exchange/traffic.h"
#include "accordion/run/options.h"

namespace accordion {

struct RunForecast {
  struct Total {
    std::int64_t steps = 0;
    Traffic traffic;  // Of rank 0: payload, wire and the published count.
    bool operator==(const Total&) const = default;
  };
  Total least, most;

  bool exact() const { return least == most; }
};

// The steps of an epoch with so many samples in a step of all ranks.
using StepsInEpoch = std::function<std::int64_t(std::int64_t global_batch)>;

// `options` as resolve() gives them. Bounds hold for runs whose gradients are finite.
RunForecast forecast_run(const TrainOptions& options, const std::vector<TensorInfo>& tensors, int workers,
                         const StepsInEpoch& steps);

}  // namespace accordion
