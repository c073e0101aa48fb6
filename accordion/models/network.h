// What the trainer needs of a model: a module that turns a batch of images into a batch of class scores.
#pragma once

#include <torch/torch.h>

namespace accordion {

class Network : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(torch::Tensor images) = 0;
};

}  // namespace accordion
