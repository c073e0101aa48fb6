#include "accordion/run/forecast.h"

#include <algorithm>

#include "accordion/exchange/forecast.h"
#include "accordion/run/replay.h"
#include "accordion/run/shapes.h"

namespace accordion {
namespace {

// What a controller decides if gradients never change, and what it might decide if they do.
class Outlook {
 public:
  Outlook(const TrainOptions& options, const std::vector<TensorInfo>& tensors, int levels)
      : batch_mild_(options.control.batch_mild),
        trials_(tensors.size(), std::vector<Trial>(static_cast<std::size_t>(levels))),
        squares_(tensors.size(), 0.0),
        rate_(learning_rate(options, 0)) {
    controller_ = run_controller(options, names_of(tensors), levels);
    now_ = controller_->first();
  }

  int level(std::size_t layer) const { return now_.levels[layer]; }

  // Whether the layer may have this level in the window instead.
  bool may_have(std::size_t layer, int level) const {
    return heeds_gradients() && controller_->may_choose(layer, level);
  }

  // Samples in a step of all ranks, 0 for the run's own: how large the batch can be by now, and how small.
  std::int64_t largest_batch() const { return now_.batch; }
  std::int64_t smallest_batch() const { return heeds_gradients() ? batch_mild_ : now_.batch; }

  void end_window(std::int64_t steps, double next_rate) {
    // Unchanged from step to step: a window's sum grows with its steps.
    const std::vector<double> norms(squares_.size(), static_cast<double>(steps));
    now_ = controller_->decide({.window = window_,
                                .lr = rate_,
                                .next_lr = next_rate,
                                .norms = norms,
                                .steps = steps,
                                .squares = squares_,
                                .trials = trials_});
    rate_ = next_rate;
    ++window_;
  }

 private:
  bool heeds_gradients() const { return controller_->needs().gradients(); }

  std::int64_t batch_mild_;
  // No level loses anything, and no step differs from another: the strongest level will do.
  std::vector<std::vector<Trial>> trials_;
  std::vector<double> squares_;
  std::unique_ptr<Controller> controller_;
  Decision now_;
  int window_ = 0;
  double rate_;
};

TallyRange step_range(const StepForecast& forecast, const Outlook& outlook, int epoch, int workers) {
  TallyRange sum;
  for (std::size_t i = 0; i < forecast.tensors(); ++i) {
    TallyRange range = forecast.tensor(i, outlook.level(i), epoch);
    for (int level = 0; level < forecast.levels(); ++level) {
      if (level == outlook.level(i) || !outlook.may_have(i, level)) continue;
      const TallyRange& other = forecast.tensor(i, level, epoch);
      range.least = at_most_both(range.least, other.least, workers);
      range.most = at_least_both(range.most, other.most, workers);
    }
    sum.least += range.least;
    sum.most += range.most;
  }
  return sum;
}

void add_epoch(const Tally& tally, std::int64_t steps, int workers, RunForecast::Total& total) {
  total.steps += steps;
  total.traffic.payload_bytes += tally.payload_bytes;
  total.traffic.wire_bytes += tally.wire_bytes(workers);
  total.traffic.paper_floats += tally.paper_floats;
}

}  // namespace

RunForecast forecast_run(const TrainOptions& options, const std::vector<TensorInfo>& tensors, int workers,
                         const StepsInEpoch& steps_of) {
  const std::vector<CodecOptions> levels = control_levels("train", options.control, parameter_count(tensors));
  const StepForecast forecast(tensors, {.levels = levels, .published = options.control.published()}, workers,
                              options.epochs);
  Outlook outlook(options, tensors, static_cast<int>(levels.size()));
  const std::int64_t own_batch = std::int64_t{options.batch} * options.accumulate * workers;
  const auto steps_with = [&](std::int64_t batch) { return steps_of(batch > 0 ? batch : own_batch); };

  RunForecast run;
  std::int64_t in_window = 0;
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const std::int64_t steps = steps_with(outlook.largest_batch()),
                       most_steps = steps_with(outlook.smallest_batch());
    Tally least, most;
    if (options.control.window == 0) {
      const TallyRange range = step_range(forecast, outlook, epoch, workers);
      least = range.least.times(steps);
      most = range.most.times(most_steps);
      outlook.end_window(steps, learning_rate(options, epoch + 1));
    } else {  // The batch is the run's own: windows do not control it.
      for (std::int64_t at = 0, next = 0; at < steps; at = next) {
        next = std::min(steps, at + options.control.window - in_window);
        const TallyRange range = step_range(forecast, outlook, epoch, workers);
        least += range.least.times(next - at);
        most += range.most.times(next - at);
        in_window += next - at;
        if (in_window < options.control.window) continue;
        outlook.end_window(in_window, learning_rate(options, epoch + static_cast<double>(next) /
                                                                         static_cast<double>(steps)));
        in_window = 0;
      }
    }
    add_epoch(least, steps, workers, run.least);
    add_epoch(most, most_steps, workers, run.most);
  }
  return run;
}

}  // namespace accordion
