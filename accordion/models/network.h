// What the trainer needs of a model: a module that turns a batch into scores, a row of them for each sample.
//
//   images   float [images, channels, height, width]
//   text     int64 [streams, positions]: a row of scores for each position, stream by stream
//   tables   float [rows, numbers + tables]: the last columns are categories, by number
#pragma once

#include <torch/torch.h>

namespace accordion {

class Network : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(torch::Tensor input) = 0;

  // Streams start anew: a model that remembers one batch of text in the next does so no longer.
  virtual void forget() {}

  // What it remembers of the last batch, which is no buffer, as each rank has its own; and the same put back.
  virtual std::vector<torch::Tensor> remembered() const { return {}; }
  virtual void remember(const std::vector<torch::Tensor>& tensors) {}
};

}  // namespace accordion
