#include "accordion/train/data_options.h"

#include "accordion/data/vocabulary.h"
#include "accordion/models/zoo.h"
#include "accordion/run/plan.h"

namespace accordion {
namespace {

std::size_t used_samples(const TrainOptions& options, const DatasetFacts& data) {
  return options.samples > 0 ? static_cast<std::size_t>(options.samples) : data.train_samples;
}

// Of all workers.
std::size_t streams_of(const TrainOptions& options, int workers) {
  return static_cast<std::size_t>(options.batch) * static_cast<std::size_t>(workers);
}

// The last token of a text is only a target.
std::size_t positions_of(const TrainOptions& options, std::size_t tokens, int workers) {
  return (std::max<std::size_t>(tokens, 1) - 1) / streams_of(options, workers);
}

void refuse(const std::string& option, const std::string& kind) {
  throw UsageError("train: " + option + " is for " + kind + ", but the data set holds none");
}

void check_images(const TrainOptions& options) {
  if (options.crop_padding > 0) refuse("crop-padding=" + std::to_string(options.crop_padding), "images");
  if (options.flip) refuse("flip=true", "images");
  if (options.rotate > 0) refuse("rotate=" + number_text(options.rotate), "images");
  if (options.diagnose == "hessian") refuse("diagnose=hessian", "images");
}

void check_text(const TrainOptions& options, const DatasetFacts& data, int workers) {
  check_window(options.model, options.bptt);
  if (options.vocabulary > 0 && static_cast<std::size_t>(options.vocabulary) < kFewestWords)
    throw UsageError("train: vocabulary=" + std::to_string(options.vocabulary) +
                     ", expected 0 for all words, or at least " + std::to_string(kFewestWords));
  if (options.test_samples == 1)
    throw UsageError("train: test-samples=1, expected at least 2: a token is predicted from the one before");
  const std::size_t tokens = used_samples(options, data);
  if (positions_of(options, tokens, workers) == 0)
    throw UsageError("train: samples=" + std::to_string(tokens) +
                     " tokens, expected more than batch x workers = " +
                     std::to_string(streams_of(options, workers)) + ", the streams that they are cut into");
}

void check_steps(const TrainOptions& options, const DatasetFacts& data, int workers) {
  const auto own = static_cast<std::int64_t>(streams_of(options, workers)) * options.accumulate;
  for (const std::int64_t batch : {own, options.control.batch_mild, options.control.batch_strong})
    if (batch > 0 && steps_in_epoch(options, data, workers, batch) == 0)
      throw UsageError("train: drop-last leaves nothing of an epoch of " +
                       std::to_string(used_samples(options, data)) +
                       " samples, expected at least one batch of " + std::to_string(batch) +
                       (std::holds_alternative<TextShape>(data.input)
                            ? " windows of " + std::to_string(options.bptt) + " tokens (bptt)"
                            : ""));
}

}  // namespace

std::int64_t steps_in_epoch(const TrainOptions& options, const DatasetFacts& data, int workers,
                            std::int64_t global_batch) {
  const std::size_t samples = used_samples(options, data);
  const auto accumulate =
      static_cast<int>(static_cast<std::size_t>(global_batch) / streams_of(options, workers));
  const EpochPlan plan = std::holds_alternative<TextShape>(data.input)
                             ? plan_text(positions_of(options, samples, workers), options.batch, options.bptt,
                                         accumulate, workers, options.drop_last)
                             : plan_epoch(samples, options.batch, accumulate, 0, workers, options.drop_last);
  return static_cast<std::int64_t>(plan.steps.size());
}

void check_samples(const TrainOptions& options, const DatasetFacts& data) {
  const auto require = [&](const std::string& option, std::int64_t samples, std::size_t there,
                           const char* what) {
    if (samples > static_cast<std::int64_t>(there))
      throw UsageError("train: " + option + "=" + std::to_string(samples) + ", expected at most " +
                       std::to_string(there) + ", the " + what + " samples of " + options.data);
  };
  require("samples", options.samples, data.train_samples, "training");
  require("test-samples", options.test_samples, data.test_samples, "test");
}

void check_data(const TrainOptions& options, const DatasetFacts& data, int workers) {
  check_model(options.model, data.input);
  if (!std::holds_alternative<ImageShape>(data.input)) check_images(options);
  if (std::holds_alternative<TextShape>(data.input))
    check_text(options, data, workers);
  else if (options.vocabulary > 0)
    refuse("vocabulary=" + std::to_string(options.vocabulary), "text");
  if (options.drop_last) check_steps(options, data, workers);
}

}  // namespace accordion
