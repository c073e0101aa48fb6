// A loader's batch as tensors, without a copy: valid as long as the batch.
#pragma once

#include <torch/torch.h>

#include "accordion/data/loader.h"

namespace accordion {

inline std::pair<torch::Tensor, torch::Tensor> batch_tensors(const Batch& batch, const Images& images) {
  const auto size = static_cast<std::int64_t>(batch.size());
  // from_blob wants a mutable pointer; nothing writes to a batch.
  return {torch::from_blob(const_cast<float*>(batch.images.data()),
                           {size, images.channels, images.height, images.width}),
          torch::from_blob(const_cast<std::int64_t*>(batch.labels.data()), {size}, torch::kLong)};
}

}  // namespace accordion
