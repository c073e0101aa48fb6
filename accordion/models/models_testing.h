// For tests of models: every model at a small size, on an input of its kind.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "accordion/base/setting.h"
#include "accordion/models/made_up.h"
#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace accordion {

struct TestModel {
  std::string name, setting;
  InputShape input;
};

// Every model, tiny and without dropout of its own, on an input of the kind that it takes; images as given.
inline std::vector<TestModel> tiny_models(const ImageShape& images, double width) {
  const std::vector<InputShape> inputs = {images, TextShape{40}, TableShape{3, {7, 5, 11}}};
  std::map<std::string, std::string> settings;
  for_each_alternative<ModelOptions>([&]<class Options>(const Options&) {
    std::string setting = "width=" + std::to_string(width);
    if constexpr (requires { Options::kTiny; }) setting = Options::kTiny;
    settings[std::string(Options::kName)] = setting;
  });
  std::vector<TestModel> models;
  for (const InputShape& input : inputs)
    for (const std::string& name : model_names(input))
      models.push_back({name, name + ":" + settings.at(name), input});
  return models;
}

inline torch::Tensor loss_of(Network& model, const MadeUpBatch& batch) {
  model.forget();
  return torch::nn::functional::cross_entropy(model.forward(batch.input), batch.targets);
}

// A narrow model's squeeze has a single unit, and where that one is at rest nothing around it has a gradient.
inline void wake_squeezes(Network& model) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model.named_parameters())
    if (parameter.key().ends_with("squeeze.bias")) parameter.value().fill_(1);
}

}  // namespace accordion
