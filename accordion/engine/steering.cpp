#include "accordion/engine/steering.h"

#include <cmath>
#include <limits>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/log/record_json.h"

namespace accordion {

Steering::Steering(int window_steps, std::vector<CodecOptions> levels, std::unique_ptr<Controller> controller,
                   Exchange& exchange, Guard* guard, Communicator& control, double rate)
    : window_steps_(window_steps),
      levels_(std::move(levels)),
      controller_(std::move(controller)),
      exchange_(exchange),
      guard_(guard),
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
  WindowStats stats = exchange_.take_window();
  if (std::isnan(rate_)) rate_ = next_rate;
  if (controller_) describe_layers(stats);
  if (controller_ && window_steps_ > 0) windows_.push_back({window_, rate_, stats.steps, layers_});
  if (!last) apply(controller_ ? decide({rate_, next_rate, std::move(stats)}) : Decision{});
  ++window_;
  steps_ = 0;
  rate_ = next_rate;
}

Decision Steering::decide(Window window) {
  const WindowStats& stats = seen_.emplace_back(std::move(window)).stats;
  return controller_->decide({.window = static_cast<int>(seen_.size()) - 1,
                              .lr = seen_.back().rate,
                              .next_lr = seen_.back().next_rate,
                              .norms = stats.norms,
                              .steps = stats.steps,
                              .squares = stats.squares,
                              .trials = stats.trials});
}

void Steering::describe_layers(const WindowStats& stats) {
  layers_.clear();
  for (std::size_t i = 0; i < exchange_.tensors(); ++i) {
    const bool dense = exchange_.level(i) == kDense;
    const CodecOptions level =
        dense ? CodecOptions(NoneOptions{}) : levels_[static_cast<std::size_t>(exchange_.level(i))];
    // Small and one-dimensional tensors go dense whatever their level says.
    const bool routed =
        !exchange_.compresses(i) && !exchange_.plain() && !std::holds_alternative<NoneOptions>(level);
    LayerRecord& layer = layers_.emplace_back();
    layer = {.name = exchange_.tensor(i).name,
             .elements = static_cast<std::int64_t>(exchange_.tensor(i).shape.count()),
             .norm = stats.norms.empty() ? std::numeric_limits<double>::quiet_NaN() : stats.norms[i],
             .level = exchange_.level(i),
             .codec = routed ? "none" : codec_text(level),
             .reason = routed ? "not worth compressing" : reasons_[i]};
    if (guard_) layer.may = guard_->may(i);
    if (guard_ && !guard_->reason(i).empty()) layer.reason = guard_->reason(i);
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
  if (std::exchange(batch_, message.back()) != message.back() && guard_) guard_->start_anew();
  message.pop_back();
  const bool first = decided_.empty();
  const std::vector<int> levels(message.begin(), message.end());
  if (std::exchange(decided_, levels) != levels || first) set_levels(levels);
  reasons_ = std::move(decision.reasons);
  batch_reason_ = std::move(decision.batch_reason);
}

void Steering::set_levels(std::span<const int> levels) {
  if (guard_) return guard_->allow(levels);
  bool changed = false;
  for (std::size_t i = 0; i < levels.size(); ++i) changed = changed || levels[i] != exchange_.level(i);
  if (changed) exchange_.set_levels(levels);
}

void Steering::save_state(const StateWriter& state) const {
  state.put("levels", std::vector<std::int64_t>(decided_.begin(), decided_.end()));
  state.put("batch", batch_);
  state.put("window", window_);
  state.put("steps", steps_);
  state.put("rate", rate_);
  state.put("control_bytes", control_bytes_);
  if (!controller_) return;
  state.put("seen", seen_.size());
  for (std::size_t w = 0; w < seen_.size(); ++w) {
    const auto& [rate, next_rate, stats] = seen_[w];
    const StateWriter window = state.within("seen").within(std::to_string(w));
    window.put("rates", std::vector{rate, next_rate});
    window.put("steps", stats.steps);
    window.put("norms", stats.norms);
    window.put("squares", stats.squares);
    for (std::size_t i = 0; i < stats.trials.size(); ++i) {
      std::vector<double> values;
      for (const Trial& trial : stats.trials[i]) values.insert(values.end(), {trial.error, trial.bytes});
      window.put("trials/" + std::to_string(i), values);
    }
    window.put("trials", stats.trials.size());
  }
  Json windows = Json::array(), layers = Json::array();
  for (const WindowRecord& window : windows_) windows.push_back(to_json(window));
  for (const LayerRecord& layer : layers_) layers.push_back(to_json(layer));
  state.put("record", Json{{"windows", windows}, {"layers", layers}}.dump());
}

void Steering::load_state(const StateReader& state) {
  std::vector<std::int64_t> levels;
  state.get("levels", levels);
  if (levels.size() != exchange_.tensors())
    throw Error("state of " + std::to_string(levels.size()) + " tensors, expected " +
                std::to_string(exchange_.tensors()));
  for (const std::int64_t level : levels)
    if (level < 0 || level >= static_cast<std::int64_t>(levels_.size()))
      throw Error("state with level " + std::to_string(level) + ", expected one of " +
                  std::to_string(levels_.size()));
  decided_.assign(levels.begin(), levels.end());
  state.get("batch", batch_);
  state.get("window", window_);
  state.get("steps", steps_);
  state.get("rate", rate_);
  state.get("control_bytes", control_bytes_);
  if (!controller_) return;
  if (!seen_.empty()) throw Error("state for a controller that has decided already, expected a new one");
  std::size_t windows = 0;
  state.get("seen", windows);
  for (std::size_t w = 0; w < windows; ++w) {
    const StateReader window = state.within("seen").within(std::to_string(w));
    std::vector<double> rates;
    WindowStats stats;
    window.get("rates", rates, 2);
    window.get("steps", stats.steps);
    window.get("norms", stats.norms);
    window.get("squares", stats.squares);
    std::size_t tensors = 0;
    window.get("trials", tensors);
    for (std::size_t i = 0; i < tensors; ++i) {
      std::vector<double> values;
      window.get("trials/" + std::to_string(i), values);
      std::vector<Trial>& trials = stats.trials.emplace_back();
      for (std::size_t k = 0; k + 1 < values.size(); k += 2) trials.push_back({values[k], values[k + 1]});
    }
    const Decision decision = decide({rates[0], rates[1], std::move(stats)});
    reasons_ = decision.reasons;
    batch_reason_ = decision.batch_reason;
  }
  std::string text;
  state.get("record", text);
  const Json record = parse_json(text, "state: its record");
  check_object(record, "state: its record");
  windows_.clear();
  for (const Json& window : require_array(record, "windows")) from_json(window, windows_.emplace_back());
  layers_.clear();
  for (const Json& layer : require_array(record, "layers")) from_json(layer, layers_.emplace_back());
}

}  // namespace accordion
