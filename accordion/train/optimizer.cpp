#include "accordion/train/optimizer.h"

#include <unordered_set>

namespace accordion {
namespace {

using torch::optim::OptimizerParamGroup;

bool is_batchnorm(const torch::nn::Module& module) {
  return module.as<torch::nn::BatchNorm1d>() || module.as<torch::nn::BatchNorm2d>() ||
         module.as<torch::nn::BatchNorm3d>();
}

// First the parameters that decay, then those that do not.
std::pair<std::vector<torch::Tensor>, std::vector<torch::Tensor>> split(torch::nn::Module& model,
                                                                        bool decay_batchnorm) {
  std::unordered_set<const c10::TensorImpl*> spared, seen;
  if (!decay_batchnorm)
    for (const auto& module : model.modules())
      if (is_batchnorm(*module))
        for (const torch::Tensor& parameter : module->parameters(/*recurse=*/false))
          spared.insert(parameter.unsafeGetTensorImpl());
  std::pair<std::vector<torch::Tensor>, std::vector<torch::Tensor>> groups;
  for (const torch::Tensor& parameter : model.parameters()) {
    if (!seen.insert(parameter.unsafeGetTensorImpl()).second) continue;
    (spared.count(parameter.unsafeGetTensorImpl()) ? groups.second : groups.first).push_back(parameter);
  }
  return groups;
}

template <class GroupOptions>
std::vector<OptimizerParamGroup> param_groups(torch::nn::Module& model, const TrainOptions& options,
                                              const GroupOptions& decaying) {
  auto [decayed, spared] = split(model, options.decay_batchnorm);
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(decayed, std::make_unique<GroupOptions>(decaying));
  if (!spared.empty()) {
    GroupOptions without = decaying;
    without.weight_decay(0);
    groups.emplace_back(spared, std::make_unique<GroupOptions>(without));
  }
  return groups;
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainOptions& options,
                                                        torch::nn::Module& model) {
  if (options.optimizer == "adamw") {
    const auto defaults = torch::optim::AdamWOptions(options.lr).weight_decay(options.weight_decay);
    return std::make_unique<torch::optim::AdamW>(param_groups(model, options, defaults), defaults);
  }
  const auto defaults = torch::optim::SGDOptions(options.lr)
                            .momentum(options.momentum)
                            .nesterov(options.nesterov)
                            .weight_decay(options.weight_decay);
  return std::make_unique<torch::optim::SGD>(param_groups(model, options, defaults), defaults);
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

}  // namespace accordion
