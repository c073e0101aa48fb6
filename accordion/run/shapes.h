// The tensors of well-known models by name, in order of registration: for questions that need sizes and no
// weights (benchmarks, traffic, advice), so without torch.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "accordion/compress/tensor.h"

namespace accordion {

std::vector<std::string> shape_names();

// Throws UsageError for an unknown name.
std::vector<TensorInfo> model_shapes(const std::string& name);

}  // namespace accordion
