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

// Gradients that carry their momentum already move a weight by the learning rate times themselves, and weight
// decay gathers momentum beside them.
TEST(Optimizer, LeavesMomentumToTheCompressor) {
  TrainOptions options;
  options.lr = 0.5;
  torch::nn::Linear model(1, 1);
  torch::NoGradGuard no_grad;
  model->weight.fill_(2);
  model->bias.fill_(0);
  auto optimizer = make_optimizer(options, *model, {model->weight.unsafeGetTensorImpl()});
  DecayWithMomentum decay({model->weight}, 0.1, 0.9, false);
  double weight = 2, velocity = 0;
  for (int step = 0; step < 3; ++step) {
    for (auto& parameter : model->parameters()) parameter.mutable_grad() = torch::ones_like(parameter);
    decay.add_to_gradients();
    optimizer->step();
    velocity = 0.9 * velocity + 0.1 * weight;
    weight -= 0.5 * (1 + velocity);
    EXPECT_NEAR(model->weight.item<double>(), weight, 1e-5) << step;
  }
  EXPECT_LT(model->bias.item<double>(), -0.5 * (1 + 1.9 + 2.7)) << "the bias has the optimizer's momentum";
}

}  // namespace
}  // namespace accordion
