#include "accordion/exchange/watch.h"

#include <cmath>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/kernels/dense.h"

namespace accordion {

Watch::Watch(const Tracking& tracking, std::span<const Layer> layers) : tracking_(tracking) {
  if (!tracking.norms) return;
  for (const Layer& layer : layers) sums_.emplace_back(layer.info().shape.count());
  if (tracking.squares) squares_.resize(layers.size());
}

void Watch::add(int tensor, std::span<const float> gradient) {
  const auto i = static_cast<std::size_t>(tensor);
  kernels::add(gradient, sums_[i]);
  if (!squares_.empty()) squares_[i] += kernels::sum_of_squares(gradient);
}

void Watch::add(int tensor, std::span<const double> gradient) {
  const auto i = static_cast<std::size_t>(tensor);
  for (std::size_t k = 0; k < gradient.size(); ++k) {
    sums_[i][k] += static_cast<float>(gradient[k]);
    if (!squares_.empty()) squares_[i] += gradient[k] * gradient[k];
  }
}

WindowStats Watch::take(std::span<const Layer> layers, std::span<const CodecOptions> levels, int world,
                        const Routing& routing) {
  WindowStats stats{.steps = std::exchange(steps_, 0)};
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    stats.norms.push_back(std::sqrt(kernels::sum_of_squares(sums_[i])));
    if (tracking_.trials)
      stats.trials.push_back(
          try_levels(sums_[i], layers[i].info().shape, levels, world, routing, tracking_.low_rank));
    std::fill(sums_[i].begin(), sums_[i].end(), 0.0f);
  }
  stats.squares = squares_;
  std::fill(squares_.begin(), squares_.end(), 0.0);
  return stats;
}

void Watch::visit_state(StateVisitor& visitor, std::span<const Layer> layers) {
  if (sums_.empty()) return;
  std::vector<float> steps = {static_cast<float>(steps_)};
  visitor.visit("window/steps", steps);
  if (steps.size() != 1) throw Error("window: no number of steps, expected one");
  steps_ = static_cast<std::int64_t>(steps[0]);
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const std::string name = "window/" + layers[i].info().name;
    visitor.visit(name, sums_[i]);
    if (sums_[i].size() != layers[i].info().shape.count())
      throw Error(name + ": a sum of " + std::to_string(sums_[i].size()) + " values, expected " +
                  std::to_string(layers[i].info().shape.count()));
    if (squares_.empty()) continue;
    // Three floats hold a double to its last bit: each takes what the one before it left.
    std::vector<float> square;
    for (double rest = squares_[i]; square.size() < 3; rest -= square.back())
      square.push_back(static_cast<float>(rest));
    visitor.visit(name + "/squares", square);
    squares_[i] = 0;
    for (const float part : square) squares_[i] += part;
  }
}

}  // namespace accordion
