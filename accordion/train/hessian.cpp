#include "accordion/train/hessian.h"

#include <algorithm>
#include <string>

#include "accordion/base/hash.h"
#include "accordion/base/options.h"
#include "accordion/base/random.h"
#include "accordion/data/loader.h"
#include "accordion/ddp/ddp.h"
#include "accordion/train/batch_tensors.h"

namespace accordion {
namespace {

// Puts a model into evaluation mode, and each module back into the mode that it had: some may be kept in
// evaluation mode for good.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& model) : model_(model), was_training_(model.is_training()) {
    for (const auto& module : model.modules(/*include_self=*/false))
      parts_.emplace_back(module, module->is_training());
    model.eval();
  }
  ~EvaluationMode() {
    model_.train(was_training_);
    // train() reaches everything below a module; parts come after what holds them.
    for (const auto& [module, was_training] : parts_) module->train(was_training);
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& model_;
  bool was_training_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> parts_;
};

std::vector<torch::Tensor> tensors_of(torch::nn::Module& model) {
  std::vector<torch::Tensor> result;
  for (const auto& [name, tensor] : exchanged_parameters(model)) result.push_back(tensor);
  return result;
}

// A part of a flat vector, in the shape of a parameter. Takes a mutable pointer because from_blob does.
torch::Tensor shaped(float* data, const torch::Tensor& parameter) {
  return torch::from_blob(data, parameter.sizes());
}

}  // namespace

void add_hessian_product(const torch::Tensor& loss, const std::vector<torch::Tensor>& parameters,
                         std::span<const float> v, std::span<float> product) {
  // grad() rather than backward(): it stops short of the nodes that accumulate gradients, and the hooks of
  // data parallelism hang there.
  const auto gradients = torch::autograd::grad({loss}, parameters, {}, /*retain_graph=*/true,
                                               /*create_graph=*/true, /*allow_unused=*/true);
  torch::autograd::variable_list outputs, directions;
  float* at = const_cast<float*>(v.data());
  for (std::size_t i = 0; i < parameters.size(); at += parameters[i++].numel())
    // A gradient that no parameter acts on has no derivative.
    if (gradients[i].defined() && gradients[i].requires_grad()) {
      outputs.push_back(gradients[i]);
      directions.push_back(shaped(at, parameters[i]).to(parameters[i].scalar_type()));
    }
  if (outputs.empty()) return;

  // The gradient of dot(gradients, v).
  const auto products = torch::autograd::grad(outputs, parameters, directions, /*retain_graph=*/false,
                                              /*create_graph=*/false, /*allow_unused=*/true);
  at = product.data();
  for (std::size_t i = 0; i < parameters.size(); at += parameters[i++].numel())
    if (products[i].defined()) shaped(at, parameters[i]).add_(products[i]);
}

TopEigenvalue::TopEigenvalue(Network& model, const ImageSet& data, std::vector<std::uint32_t> samples,
                             int batch, Communicator& control, std::uint64_t seed)
    : model_(model),
      data_(data),
      control_(control),
      samples_(std::move(samples)),
      parameters_(tensors_of(model)) {
  check_number("Hessian", "batch", batch, at_least(1));
  if (samples_.empty()) throw UsageError("Hessian: no samples, expected at least one");
  // Here and not in the loader, where only the rank that meets the sample would fail.
  if (const auto largest = *std::max_element(samples_.begin(), samples_.end()); largest >= data.train.size())
    throw UsageError("Hessian: sample " + std::to_string(largest) + ", expected one below " +
                     std::to_string(data.train.size()));
  const Share mine = share(0, samples_.size(), control.rank(), control.size());
  const auto step = static_cast<std::size_t>(batch);
  for (std::size_t begin = mine.begin; begin < mine.end; begin += step)
    batches_.push_back({begin, std::min(begin + step, mine.end)});

  std::size_t elements = 0;
  for (const torch::Tensor& parameter : parameters_) elements += static_cast<std::size_t>(parameter.numel());
  if (elements == 0) throw UsageError("Hessian: the model has no parameter that needs a gradient");
  vector_.resize(elements);
  RandomStream(RandomKey{Hash().add("Hessian").add(seed).value()}).normal(vector_);
}

EigenvalueEstimate TopEigenvalue::estimate() {
  const EvaluationMode evaluation(model_);
  const torch::AutoGradMode with_gradients(true);
  // Ranks must not differ in a single bit, lest one stop before another; machines may in their logarithms.
  control_.broadcast(std::as_writable_bytes(std::span(vector_)), 0);
  return top_eigenvalue([this](auto v, auto product) { multiply(v, product); }, vector_);
}

void TopEigenvalue::multiply(std::span<const float> v, std::span<float> product) {
  std::fill(product.begin(), product.end(), 0.0f);
  BatchLoader loader(data_.train, data_.mean, data_.deviation);
  loader.queue(0, samples_, batches_);
  while (const auto batch = loader.next()) {
    const auto [images, labels] = batch_tensors(*batch, data_.train);
    const double share_of_all = static_cast<double>(batch->size()) / static_cast<double>(samples_.size());
    const auto loss = torch::nn::functional::cross_entropy(model_.forward(images), labels) * share_of_all;
    add_hessian_product(loss, parameters_, v, product);
  }
  control_.sum(product);
}

}  // namespace accordion
