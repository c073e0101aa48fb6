// Every model's gradients against central differences, narrow and in double precision.
#include <gtest/gtest.h>

#include "accordion/models/models_testing.h"

namespace accordion {
namespace {

class Loss {
 public:
  Loss(Network& model, const InputShape& input) : model_(model), batch_(made_up(input, 8)) {
    if (batch_.input.is_floating_point()) batch_.input = batch_.input.to(torch::kDouble);
  }

  torch::Tensor operator()() const {
    torch::manual_seed(3);  // The same units are dropped every time.
    return loss_of(model_, batch_);
  }

  // The slope at `parameter` along `direction`, a step to either side.
  double slope(torch::Tensor parameter, const torch::Tensor& direction, double step) const {
    const torch::NoGradGuard no_grad;
    const torch::Tensor kept = parameter.clone();
    const auto moved = [&](double by) {
      parameter.copy_(kept + by * direction);
      return (*this)().item<double>();
    };
    const double slope = (moved(step) - moved(-step)) / (2 * step);
    parameter.copy_(kept);
    return slope;
  }

 private:
  Network& model_;
  MadeUpBatch batch_;
};

torch::Tensor unit(const torch::Tensor& x) {
  return x / x.norm().clamp_min(1e-30);
}

TEST(Gradients, AreTheSlopesOfTheLoss) {
  for (const auto& [name, setting, input] : tiny_models({2, 8, 8, 3}, 0.02)) {
    torch::manual_seed(11);
    const auto model = make_model(setting, input);
    model->to(torch::kDouble);
    wake_squeezes(*model);
    const Loss loss(*model, input);
    loss().backward();
    for (const auto& parameter : model->named_parameters()) {
      const torch::Tensor gradient = parameter.value().grad();
      // Along the gradient, where it is steepest, and somewhere else as well.
      const torch::Tensor direction = unit(gradient) + unit(torch::randn_like(gradient));
      const double expected = (gradient * direction).sum().item<double>();
      // A step may cross the kink of a ReLU; a shorter one, with more rounding, then does not.
      double slope = 0;
      bool agrees = false;
      for (const double step : {1e-6, 1e-7})
        if (!agrees) {
          slope = loss.slope(parameter.value(), direction, step);
          agrees = std::abs(slope - expected) < 1e-5 * std::abs(expected) + 3e-15 / step;
        }
      EXPECT_TRUE(agrees) << setting << " " << parameter.key() << ": slope " << slope << ", gradient "
                          << expected;
    }
  }
}

}  // namespace
}  // namespace accordion
