// For tests of models: every model at a small size, on an input of its kind.
#pragma once

#include <gtest/gtest.h>

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

struct Learnt {
  std::shared_ptr<Network> model;
  double first_loss = 0, last_loss = 0;
  bool all_right = false;
};

inline Learnt learn(const std::string& setting, const InputShape& input, int steps, std::uint64_t seed) {
  torch::manual_seed(seed);
  Learnt result{.model = make_model(setting, input)};
  Network& model = *result.model;
  for (const auto& module : model.modules())  // Dropout is there to prevent just this.
    if (module->as<torch::nn::Dropout>()) module->eval();
  const MadeUpBatch batch = made_up(input, 32);
  torch::optim::Adam optimizer(model.parameters(), torch::optim::AdamOptions(3e-3));
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const auto loss = loss_of(model, batch);
    if (step == 0) result.first_loss = loss.item<double>();
    loss.backward();
    optimizer.step();
  }
  const torch::NoGradGuard no_grad;
  result.last_loss = loss_of(model, batch).item<double>();
  model.forget();
  result.all_right = torch::equal(model.forward(batch.input).argmax(1), batch.targets);
  return result;
}

// 32 samples, in so many steps.
inline void learns_by_heart(const std::string& setting, const InputShape& input, int steps) {
  const Learnt learnt = learn(setting, input, steps, 5);
  EXPECT_NEAR(learnt.first_loss, std::log(choices(input)), 1) << setting;
  EXPECT_LT(learnt.last_loss, 0.3) << setting;
  EXPECT_TRUE(learnt.all_right) << setting;
}

// A narrow model's squeeze has a single unit, and where that one is at rest nothing around it has a gradient.
inline void wake_squeezes(Network& model) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model.named_parameters())
    if (parameter.key().ends_with("squeeze.bias")) parameter.value().fill_(1);
}

}  // namespace accordion
