// The optimizer that a run's options describe.
#pragma once

#include <torch/torch.h>

#include <unordered_set>

#include "accordion/run/options.h"

namespace accordion {

// BatchNorm parameters form a group without weight decay unless options.decay_batchnorm. Parameters that
// `has_momentum` names got their momentum before they were compressed: they form a group without momentum and
// weight decay.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(
    const TrainOptions& options, torch::nn::Module& model,
    const std::unordered_set<const c10::TensorImpl*>& has_momentum = {});

// Weight decay of parameters whose momentum comes before compression: it runs through a momentum of its own,
// and what comes out is added to the gradient (as in the published code of deep gradient compression).
class DecayWithMomentum {
 public:
  DecayWithMomentum(std::vector<torch::Tensor> parameters, double decay, double momentum, bool nesterov);

  void add_to_gradients();

  const std::vector<torch::Tensor>& velocity() const { return velocity_; }

 private:
  std::vector<torch::Tensor> parameters_, velocity_;
  double decay_, momentum_;
  bool nesterov_;
};

// What it keeps of a parameter between steps, by its own words ("momentum_buffer"); none before the first step. And the same
// put back.
using KeptTensors = std::vector<std::pair<std::string, torch::Tensor>>;
KeptTensors kept_of(torch::optim::Optimizer& optimizer, const torch::Tensor& parameter);
void keep(torch::optim::Optimizer& optimizer, const torch::Tensor& parameter, const KeptTensors& tensors);

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);

}  // namespace accordion
