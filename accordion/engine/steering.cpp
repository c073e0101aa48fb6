#include "accordion/engine/steering.h"

#include <cmath>
#include <limits>

namespace accordion {

Steering::Steering(int window_steps, std::vector<CodecOptions> levels, std::unique_ptr<Controller> controller,
                   Exchange& exchange, Communicator& control, double rate)
    : window_steps_(window_steps),
      levels_(std::move(levels)),
      controller_(std::move(controller)),
      exchange_(exchange),
      control_(control),
      rate_(rate) {
  apply(controller_ ? controller_->first() : Decision{});
  // An epoch may end before the first window does.
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  if (controller_) describe_layers({.norms = std::vector<double>(exchange_.tensors(), unknown)});
}

void Steering::end_step(double next_rate, bool last) {
  // The last window is as long as there are steps left for it.
  if (window_steps_ > 0 && (++steps_ == window_steps_ || last)) end_window(next_rate, last);
}

void Steering::end_epoch(double next_rate, bool last) {
  if (window_steps_ == 0) end_window(next_rate, last);
}

void Steering::end_window(double next_rate, bool last) {
  const WindowStats stats = exchange_.take_window();
  if (std::isnan(rate_)) rate_ = next_rate;
  if (controller_) describe_layers(stats);
  if (controller_ && window_steps_ > 0) windows_.push_back({window_, rate_, stats.steps, layers_});
  if (!last)
    apply(controller_ ? controller_->decide({.window = window_,
                                             .lr = rate_,
                                             .next_lr = next_rate,
                                             .norms = stats.norms,
                                             .steps = stats.steps,
                                             .squares = stats.squares,
                                             .trials = stats.trials})
                      : Decision{});
  ++window_;
  steps_ = 0;
  rate_ = next_rate;
}

void Steering::describe_layers(const WindowStats& stats) {
  layers_.clear();
  for (std::size_t i = 0; i < exchange_.tensors(); ++i) {
    const CodecOptions& level = levels_[static_cast<std::size_t>(exchange_.level(i))];
    // Small and one-dimensional tensors go dense whatever their level says.
    const bool routed = !exchange_.compresses(i) && !std::holds_alternative<NoneOptions>(level);
    LayerRecord& layer = layers_.emplace_back();
    layer = {.name = exchange_.tensor(i).name,
             .elements = static_cast<std::int64_t>(exchange_.tensor(i).shape.count()),
             .norm = stats.norms.empty() ? std::numeric_limits<double>::quiet_NaN() : stats.norms[i],
             .level = exchange_.level(i),
             .codec = routed ? "none" : codec_text(level),
             .reason = routed ? "not worth compressing" : reasons_[i]};
    if (!stats.squares.empty()) layer.squares = stats.squares[i];
    if (stats.trials.empty()) continue;
    for (const Trial& trial : stats.trials[i]) {
      layer.level_errors.push_back(trial.error);
      layer.level_bytes.push_back(trial.bytes);
    }
  }
}

void Steering::apply(Decision decision) {
  std::vector<std::int64_t> message(decision.levels.begin(), decision.levels.end());
  message.push_back(decision.batch);
  message.resize(exchange_.tensors() + 1);
  control_.broadcast(std::as_writable_bytes(std::span(message)), 0);
  control_bytes_ += message.size() * sizeof message[0];
  batch_ = message.back();
  message.pop_back();
  bool changed = false;
  for (std::size_t i = 0; i < message.size(); ++i) changed = changed || message[i] != exchange_.level(i);
  if (changed) exchange_.set_levels(std::vector<int>(message.begin(), message.end()));
  reasons_ = std::move(decision.reasons);
  batch_reason_ = std::move(decision.batch_reason);
}

}  // namespace accordion
