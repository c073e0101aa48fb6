#include "accordion/run/decide_again.h"

#include <algorithm>
#include <cmath>

#include "accordion/base/error.h"

namespace accordion {
namespace {

// What the controller was shown, or would have been.
class Shown {
 public:
  Shown(const RecordedWindow& window, double next_lr, const Needs& needs, std::size_t levels,
        const std::string& who)
      : window_(window), next_lr_(next_lr) {
    bool any_trial = false;
    for (const LayerRecord& layer : window.layers) {
      norms_.push_back(layer.norm);
      if (needs.squares && !layer.squares) lacks("squared norms of single steps", who);
      squares_.push_back(layer.squares.value_or(0));
      any_trial = any_trial || !layer.level_errors.empty();
      trials_.push_back(needs.trials ? trials_of(layer, levels) : std::vector<Trial>());
    }
    if (needs.trials && !any_trial) lacks("the errors of its levels", who);
  }

  Observation observation() const {
    return {.window = window_.window,
            .lr = window_.lr,
            .next_lr = next_lr_,
            .norms = norms_,
            .steps = window_.steps,
            .squares = squares_,
            .trials = trials_};
  }

 private:
  [[noreturn]] static void lacks(const std::string& what, const std::string& who) {
    throw UsageError("decide: controller=" + who + " needs more than norms: " + what +
                     ", expected the folder of a run that recorded them (train --controller " + who + ")");
  }

  // None for a layer that is not compressed.
  std::vector<Trial> trials_of(const LayerRecord& layer, std::size_t levels) const {
    const auto refuse = [&](const std::string& what) {
      throw UsageError("decide: epoch " + std::to_string(window_.window) + ": layer " + layer.name + " " +
                       what);
    };
    const std::vector<double>&errors = layer.level_errors, &bytes = layer.level_bytes;
    if (errors.empty()) return {};
    if (errors.size() != levels || bytes.size() != levels)
      refuse("has " + std::to_string(errors.size()) + " level_errors and " + std::to_string(bytes.size()) +
             " level_bytes, expected " + std::to_string(levels) + " of each");
    const auto negative = [](double error) { return error < 0; };  // An overflow is recorded as no number.
    const auto no_size = [](double size) { return !std::isfinite(size) || size < 0; };
    if (std::any_of(errors.begin(), errors.end(), negative)) refuse("has a level_errors below 0");
    if (std::any_of(bytes.begin(), bytes.end(), no_size)) refuse("has a level_bytes that is no size");
    std::vector<Trial> trials;
    for (std::size_t i = 0; i < levels; ++i) trials.push_back({errors[i], bytes[i]});
    return trials;
  }

  const RecordedWindow& window_;
  double next_lr_;
  std::vector<double> norms_, squares_;
  std::vector<std::vector<Trial>> trials_;
};

}  // namespace

std::vector<Decision> decide_again(const std::vector<RecordedWindow>& windows, Controller& controller,
                                   std::size_t levels, const std::string& who) {
  std::vector<Decision> decisions = {controller.first()};
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const bool last = w + 1 == windows.size();
    const Shown shown(windows[w], windows[last ? w : w + 1].lr, controller.needs(), levels, who);
    if (!last) decisions.push_back(controller.decide(shown.observation()));
  }
  return decisions;
}

}  // namespace accordion
