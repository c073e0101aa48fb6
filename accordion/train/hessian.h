// The largest eigenvalue of the Hessian of the training loss: the sharpness that critical learning regimes
// show in. The gradient's norm detects them as well and costs nothing; this is for checking that it does.
//
// One product with the Hessian costs about three gradients, and an estimate takes up to fifty products, so
// the loss is taken over a fixed part of the training set.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>
#include <vector>

#include "accordion/adapt/power_iteration.h"
#include "accordion/comm/communicator.h"
#include "accordion/data/dataset.h"
#include "accordion/data/order.h"
#include "accordion/models/network.h"

namespace accordion {

// Adds the Hessian of `loss` times `v` to `product`. Both run over all elements of `parameters`, each of
// which is listed once. Gradients kept in the parameters stay as they are, and no hook on them fires.
void add_hessian_product(const torch::Tensor& loss, const std::vector<torch::Tensor>& parameters,
                         std::span<const float> v, std::span<float> product);

class TopEigenvalue {
 public:
  // `samples` of data.train, the same on all ranks, which divide them. The loss is the mean over them,
  // without augmentation and with the model in evaluation mode. Keeps references to model, data and control.
  TopEigenvalue(Network& model, const ImageSet& data, std::vector<std::uint32_t> samples, int batch,
                Communicator& control, std::uint64_t seed);

  // Collective, on replicas with equal parameters and buffers; all ranks get the same estimate, and up to
  // rounding the one that any other number of ranks would get. Leaves no trace in the model or in torch's
  // generator: training goes on as if it had not been made.
  EigenvalueEstimate estimate();

  // Where the next estimate starts: first a Gaussian drawn from the seed, then the last eigenvector. A run
  // that is resumed estimates alike only if it puts this back.
  std::span<float> vector() { return vector_; }

 private:
  void multiply(std::span<const float> v, std::span<float> product);

  Network& model_;
  const ImageSet& data_;
  Communicator& control_;
  std::vector<std::uint32_t> samples_;
  std::vector<Share> batches_;  // This rank's.
  std::vector<torch::Tensor> parameters_;
  std::vector<float> vector_;
};

}  // namespace accordion
