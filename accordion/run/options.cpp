#include "accordion/run/options.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace accordion {

void check_train_options(const TrainOptions& options) {
  check("train", options);
  check_control("train", options.control);
  check_guard("train", guard_mode(options.guard), options.control,
              !options.profile.empty() || !options.replay.empty());
  if (!options.profile.empty() && options.guard == "none")
    throw UsageError("train: profile=" + options.profile +
                     " with guard=none, expected guard=harmless or guard=fastest, which decide by it");
  if (options.control.controls_batch() && options.accumulate != 1)
    throw UsageError("train: accumulate=" + std::to_string(options.accumulate) +
                     " beside batch-mild, expected 1: steps accumulate as many batches as they need");
  if (options.diagnose != "none" && options.control.window > 0)
    throw UsageError("train: diagnose=" + options.diagnose +
                     " beside window, expected window=0: detectors are compared epoch by epoch");
  if (options.control.norms == "aggregated" && options.non_finite == "skip")
    throw UsageError(
        "train: norms=aggregated beside non-finite=skip, expected norms=local: the mean of a step that is "
        "skipped must not be watched");
  const std::vector<CodecOptions> levels = control_levels("train", options.control, kAnyModel);
  if (traits_of(levels[0]).momentum && options.optimizer != "sgd") {
    const std::string codec(codec_name(levels[0]));
    throw UsageError("train: codec=" + codec + " with optimizer=" + options.optimizer +
                     ", expected sgd: " + codec + " applies SGD's momentum before it compresses");
  }
  if (options.schedule == "step" && options.milestones.empty())
    throw UsageError("train: schedule=step without milestones, expected the epochs at which the rate falls");
  if (options.schedule != "step" && !options.milestones.empty())
    throw UsageError("train: milestones need schedule=step, but schedule=" + options.schedule);
  for (std::size_t i = 1; i < options.milestones.size(); ++i)
    if (options.milestones[i] <= options.milestones[i - 1])
      throw UsageError("train: milestones must rise, but " + std::to_string(options.milestones[i]) +
                       " follows " + std::to_string(options.milestones[i - 1]));
  if (options.nesterov && (options.optimizer != "sgd" || options.momentum == 0))
    throw UsageError("train: nesterov needs optimizer=sgd and momentum above 0");
  if (options.warmup_lr > options.lr)
    throw UsageError("train: warmup-lr=" + number_text(options.warmup_lr) +
                     ", expected at most lr=" + number_text(options.lr));
}

void check_workers(const TrainOptions& options, int workers) {
  check_ranks(control_levels("train", options.control, kAnyModel), workers);
  const std::int64_t unit = static_cast<std::int64_t>(options.batch) * workers;
  const auto check = [&](const char* name, std::int64_t batch) {
    if (batch % unit != 0)
      throw UsageError("train: " + std::string(name) + "=" + std::to_string(batch) +
                       ", expected a multiple of batch x workers, " + std::to_string(options.batch) + " x " +
                       std::to_string(workers) + " = " + std::to_string(unit));
  };
  check("batch-mild", options.control.batch_mild);
  check("batch-strong", options.control.batch_strong);
}

std::vector<std::string> train_warnings(const TrainOptions& options) {
  if (options.optimizer != "sgd") return {};
  for (const CodecOptions& level : control_levels("train", options.control, kAnyModel))
    if (const RateLimit rate = traits_of(level).rate; options.lr > rate.most)
      return {"with codec=" + std::string(codec_name(level)) + " " + std::string(rate.reason) + ", and lr=" +
              number_text(options.lr) + " is far for that; " + std::string(rate.usual) + " is usual"};
  return {};
}

double learning_rate(const TrainOptions& options, double epoch) {
  if (epoch < options.warmup_epochs)
    return options.warmup_lr + (options.lr - options.warmup_lr) * epoch / options.warmup_epochs;
  if (options.schedule == "step") {
    // The published code looks back at the epoch that has ended, and asks whether it is past the milestone.
    const int late = options.control.published() ? 2 : 0;
    double rate = options.lr;
    for (int milestone : options.milestones)
      if (epoch >= milestone + late) rate /= options.decay;
    return rate;
  }
  if (options.schedule == "cosine") {
    const double length = options.epochs - options.warmup_epochs;
    const double progress = length > 0 ? std::min(1.0, (epoch - options.warmup_epochs) / length) : 1.0;
    return options.lr * 0.5 * (1 + std::cos(std::numbers::pi * progress));
  }
  return options.lr;
}

}  // namespace accordion
