// The tensors of a run's model, and how they travel.
#pragma once

#include <string>
#include <vector>

#include "accordion/base/json_fwd.h"
#include "accordion/compress/tensor.h"
#include "accordion/run/options.h"

namespace accordion::cli {

// Of a model that can be trained, in order of registration. Builds it, which takes a moment.
std::vector<TensorInfo> run_tensors(const TrainOptions& options);

// Of a run that has been: its config.json lists the tensors of a model that only the run's script can build.
std::vector<TensorInfo> run_tensors(const Json& config);

// Whether a run of these options compresses the tensor at this level, or sends it dense as it is.
bool compresses(const ControlOptions& control, const CodecOptions& level, const TensorInfo& tensor,
                int workers);

}  // namespace accordion::cli
