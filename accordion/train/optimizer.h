// The optimizer that a run's options describe.
#pragma once

#include <torch/torch.h>

#include "accordion/train/options.h"

namespace accordion {

// BatchNorm parameters form a group without weight decay unless options.decay_batchnorm.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainOptions& options,
                                                        torch::nn::Module& model);

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);

}  // namespace accordion
