// For tests of models: small inputs of each kind, and every model at a size that suits them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace accordion {

struct RandomBatch {
  torch::Tensor input, targets;
};

inline RandomBatch random_batch(const ImageShape& shape, int samples) {
  return {torch::randn({samples, shape.channels, shape.height, shape.width}),
          torch::randint(shape.classes, {samples}, torch::kLong)};
}

// Every stream begins with a word of its own (if there are as many), so that what follows can be known.
inline RandomBatch random_batch(const TextShape& shape, int samples) {
  constexpr int kPositions = 6;
  auto tokens = torch::randint(shape.vocabulary, {samples, kPositions + 1}, torch::kLong);
  tokens.select(1, 0).copy_(torch::arange(samples) % shape.vocabulary);
  return {tokens.narrow(1, 0, kPositions), tokens.narrow(1, 1, kPositions).flatten()};
}

inline RandomBatch random_batch(const TableShape& shape, int samples) {
  std::vector<torch::Tensor> columns = {torch::randn({samples, shape.numbers})};
  for (const int categories : shape.tables)
    columns.push_back(torch::randint(categories, {samples, 1}, torch::kFloat));
  return {torch::cat(columns, 1), torch::randint(2, {samples}, torch::kLong)};
}

inline RandomBatch random_batch(const InputShape& shape, int samples) {
  return std::visit([&](const auto& each) { return random_batch(each, samples); }, shape);
}

// How many scores there are for each target.
inline int choices(const ImageShape& shape) {
  return shape.classes;
}
inline int choices(const TextShape& shape) {
  return shape.vocabulary;
}
inline int choices(const TableShape&) {
  return 2;
}
inline int choices(const InputShape& shape) {
  return std::visit([](const auto& each) { return choices(each); }, shape);
}

struct TestModel {
  std::string name, setting;
  InputShape input;
};

// Every model, tiny and without dropout of its own, on an input of the kind that it takes; images as given.
inline std::vector<TestModel> tiny_models(const ImageShape& images, double width) {
  const std::vector<InputShape> inputs = {images, TextShape{40}, TableShape{3, {7, 5, 11}}};
  std::vector<TestModel> models;
  for (const InputShape& input : inputs)
    for (const std::string& name : model_names(input)) {
      std::string setting = name + ":width=" + std::to_string(width);
      if (name == "lstm") setting = "lstm:layers=2,hidden=6,dropout=0";
      if (name == "gpt") setting = "gpt:layers=2,heads=2,width=8,context=8,dropout=0";
      if (name == "dlrm") setting = "dlrm:embedding=4,bottom=8,top=8";
      models.push_back({name, setting, input});
    }
  return models;
}

inline torch::Tensor loss_of(Network& model, const RandomBatch& batch) {
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
