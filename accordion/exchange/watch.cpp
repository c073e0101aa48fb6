#include "accordion/exchange/watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "accordion/compress/try_levels.h"
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

void Watch::add_sum(std::size_t tensor, std::span<const float> sum, double squares) {
  kernels::add(sum, sums_[tensor]);
  if (!squares_.empty()) squares_[tensor] += squares;
}

WindowStats Watch::take(std::span<const Layer> layers, std::span<const CodecOptions> levels, int world,
                        const Routing& routing) {
  WindowStats stats{.steps = std::exchange(steps_, 0)};
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    stats.norms.push_back(std::sqrt(kernels::sum_of_squares(sums_[i])));
    if (tracking_.trials)
      stats.trials.push_back(
          try_levels(sums_[i], layers[i].info().shape, levels, world, routing, tracking_.low_rank));
  }
  stats.squares = squares_;
  clear();
  return stats;
}

void Watch::save_state(const StateWriter& state, std::span<const Layer> layers) const {
  if (sums_.empty()) return;
  state.put("steps", steps_);
  if (steps_ == 0) return;  // All of it is zero, and as large as the model.
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const StateWriter tensor = state.within(layers[i].info().name);
    tensor.put("sum", sums_[i]);
    if (!squares_.empty()) tensor.put("squares", squares_[i]);
  }
}

void Watch::load_state(const StateReader& state, std::span<const Layer> layers) {
  // Who keeps a record watches, though no decision depends on it: a run may go on with one that had none, or without.
  steps_ = 0;
  if (!sums_.empty() && state.has("steps")) state.get("steps", steps_);
  if (steps_ == 0) {
    clear();
    state.all();  // Older states have the zeros of a window that has not begun, too.
    return;
  }
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const StateReader tensor = state.within(layers[i].info().name);
    tensor.get("sum", sums_[i], sums_[i].size());
    if (!squares_.empty()) tensor.get("squares", squares_[i]);
  }
}

void Watch::clear() {
  for (std::vector<float>& sum : sums_) std::fill(sum.begin(), sum.end(), 0.0f);
  std::fill(squares_.begin(), squares_.end(), 0.0);
}

}  // namespace accordion
