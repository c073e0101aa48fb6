#include "accordion/train/optimizer.h"

#include <sstream>
#include <type_traits>
#include <unordered_set>

#include "accordion/base/error.h"

namespace accordion {
namespace {

using torch::optim::OptimizerParamGroup;

bool is_batchnorm(const torch::nn::Module& module) {
  return module.as<torch::nn::BatchNorm1d>() || module.as<torch::nn::BatchNorm2d>() ||
         module.as<torch::nn::BatchNorm3d>();
}

using TensorSet = std::unordered_set<const c10::TensorImpl*>;

struct Split {
  std::vector<torch::Tensor> decayed, spared,
      finished;  // `finished`: what only the learning rate is left for.
};

Split split(torch::nn::Module& model, bool decay_batchnorm, const TensorSet& has_momentum) {
  TensorSet spared, seen;
  if (!decay_batchnorm)
    for (const auto& module : model.modules())
      if (is_batchnorm(*module))
        for (const torch::Tensor& parameter : module->parameters(/*recurse=*/false))
          spared.insert(parameter.unsafeGetTensorImpl());
  Split groups;
  for (const torch::Tensor& parameter : model.parameters()) {
    const c10::TensorImpl* identity = parameter.unsafeGetTensorImpl();
    if (!seen.insert(identity).second) continue;
    auto& group = has_momentum.count(identity) ? groups.finished
                  : spared.count(identity)     ? groups.spared
                                               : groups.decayed;
    group.push_back(parameter);
  }
  return groups;
}

template <class GroupOptions>
std::vector<OptimizerParamGroup> param_groups(const Split& split, const GroupOptions& decaying) {
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(split.decayed, std::make_unique<GroupOptions>(decaying));
  if (!split.spared.empty()) {
    GroupOptions without = decaying;
    without.weight_decay(0);
    groups.emplace_back(split.spared, std::make_unique<GroupOptions>(without));
  }
  return groups;
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainOptions& options, torch::nn::Module& model,
                                                        const TensorSet& has_momentum) {
  const Split parameters = split(model, options.decay_batchnorm, has_momentum);
  if (options.optimizer == "adamw") {
    const auto defaults = torch::optim::AdamWOptions(options.lr).weight_decay(options.weight_decay);
    return std::make_unique<torch::optim::AdamW>(param_groups(parameters, defaults), defaults);
  }
  const auto defaults = torch::optim::SGDOptions(options.lr)
                            .momentum(options.momentum)
                            .nesterov(options.nesterov)
                            .weight_decay(options.weight_decay);
  auto groups = param_groups(parameters, defaults);
  if (!parameters.finished.empty())
    groups.emplace_back(parameters.finished,
                        std::make_unique<torch::optim::SGDOptions>(torch::optim::SGDOptions(options.lr)));
  return std::make_unique<torch::optim::SGD>(std::move(groups), defaults);
}

DecayWithMomentum::DecayWithMomentum(std::vector<torch::Tensor> parameters, double decay, double momentum,
                                     bool nesterov)
    : parameters_(std::move(parameters)), decay_(decay), momentum_(momentum), nesterov_(nesterov) {
  for (const torch::Tensor& parameter : parameters_) velocity_.push_back(torch::zeros_like(parameter));
}

void DecayWithMomentum::add_to_gradients() {
  if (decay_ == 0) return;
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    torch::Tensor gradient = parameters_[i].grad();
    velocity_[i].mul_(momentum_).add_(parameters_[i], decay_);
    if (nesterov_)
      gradient.add_(parameters_[i], decay_).add_(velocity_[i], momentum_);
    else
      gradient.add_(velocity_[i]);
  }
}

namespace {

// Its place in the optimizer's map: by address, which torch 1.13 writes as text.
template <class Map>
auto key_in(const Map&, const torch::Tensor& parameter) {
  if constexpr (std::is_same_v<typename Map::key_type, std::string>) {
    std::ostringstream text;
    text << parameter.unsafeGetTensorImpl();
    return text.str();
  } else {
    return typename Map::key_type(parameter.unsafeGetTensorImpl());
  }
}

const torch::Tensor& tensor_named(const KeptTensors& tensors, const std::string& name) {
  for (const auto& [known, tensor] : tensors)
    if (known == name) return tensor;
  throw Error("optimizer: no " + name + " of a parameter, expected the state of the same optimizer");
}

}  // namespace

KeptTensors kept_of(torch::optim::Optimizer& optimizer, const torch::Tensor& parameter) {
  const auto found = optimizer.state().find(key_in(optimizer.state(), parameter));
  if (found == optimizer.state().end()) return {};
  if (const auto* adamw = dynamic_cast<const torch::optim::AdamWParamState*>(found->second.get()))
    return {{"step", torch::tensor(adamw->step(), torch::kLong)},
            {"exp_avg", adamw->exp_avg()},
            {"exp_avg_sq", adamw->exp_avg_sq()}};
  const auto& sgd = dynamic_cast<const torch::optim::SGDParamState&>(*found->second);
  if (!sgd.momentum_buffer().defined()) return {};
  return {{"momentum_buffer", sgd.momentum_buffer()}};
}

void keep(torch::optim::Optimizer& optimizer, const torch::Tensor& parameter, const KeptTensors& tensors) {
  if (tensors.empty()) return;
  auto& kept = optimizer.state()[key_in(optimizer.state(), parameter)];
  if (dynamic_cast<torch::optim::AdamW*>(&optimizer)) {
    auto state = std::make_unique<torch::optim::AdamWParamState>();
    state->step(tensor_named(tensors, "step").item<std::int64_t>());
    state->exp_avg(tensor_named(tensors, "exp_avg"));
    state->exp_avg_sq(tensor_named(tensors, "exp_avg_sq"));
    kept = std::move(state);
  } else {
    auto state = std::make_unique<torch::optim::SGDParamState>();
    state->momentum_buffer(tensor_named(tensors, "momentum_buffer"));
    kept = std::move(state);
  }
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

}  // namespace accordion
