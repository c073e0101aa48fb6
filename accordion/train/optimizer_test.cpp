#include "accordion/train/optimizer.h"

#include <gtest/gtest.h>

namespace accordion {
namespace {

struct Small : torch::nn::Module {
  torch::nn::Linear linear{register_module("linear", torch::nn::Linear(2, 3))};
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(3))};
};

// One step with zero gradients moves only what decays.
std::pair<bool, bool> moved(const TrainOptions& options) {
  torch::manual_seed(1);
  auto model = std::make_shared<Small>();
  torch::NoGradGuard no_grad;
  model->norm->weight.fill_(0.5);
  for (auto& parameter : model->parameters()) parameter.mutable_grad() = torch::zeros_like(parameter);
  const auto linear = model->linear->weight.clone(), norm = model->norm->weight.clone();
  make_optimizer(options, *model)->step();
  return {!torch::equal(linear, model->linear->weight), !torch::equal(norm, model->norm->weight)};
}

TEST(Optimizer, DecaysBatchNormOnlyWhenAsked) {
  for (const char* name : {"sgd", "adamw"}) {
    TrainOptions options;
    options.optimizer = name;
    options.weight_decay = 0.1;
    EXPECT_EQ(moved(options), (std::pair{true, true})) << name;
    options.decay_batchnorm = false;
    EXPECT_EQ(moved(options), (std::pair{true, false})) << name;
    options.weight_decay = 0;
    EXPECT_EQ(moved(options), (std::pair{false, false})) << name;
  }
}

TEST(Optimizer, NesterovLooksAhead) {
  // With velocity v = m v + g, heavy ball moves by lr v, Nesterov by lr (g + m v).
  for (const bool nesterov : {false, true}) {
    TrainOptions options;
    options.lr = 0.1;
    options.weight_decay = 0;
    options.nesterov = nesterov;
    torch::nn::Linear model(1, 1);
    torch::NoGradGuard no_grad;
    auto optimizer = make_optimizer(options, *model);
    set_learning_rate(*optimizer, 0.5);
    model->weight.fill_(0);
    for (int step = 0; step < 2; ++step) {
      for (auto& parameter : model->parameters()) parameter.mutable_grad() = torch::ones_like(parameter);
      optimizer->step();
    }
    const double expected = nesterov ? -0.5 * ((1 + 0.9) + (1 + 0.9 * 1.9)) : -0.5 * (1 + 1.9);
    EXPECT_NEAR(model->weight.item<double>(), expected, 1e-6);
  }
}

}  // namespace
}  // namespace accordion
