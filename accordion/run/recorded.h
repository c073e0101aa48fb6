// What a run's config.json says that the run was. Whoever can write the file may have written anything.
#pragma once

#include <optional>
#include <vector>

#include "accordion/base/json_fwd.h"
#include "accordion/compress/tensor.h"
#include "accordion/run/options.h"

namespace accordion {

// All throw UsageError for what cannot be.
TrainOptions recorded_options(const Json& config);
int recorded_workers(const Json& config);  // 1, where it does not say.

// Of a model that only the run's script can build; nothing where the tensors are not listed.
std::optional<std::vector<TensorInfo>> recorded_tensors(const Json& config);

}  // namespace accordion
