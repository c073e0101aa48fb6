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

void refuse(const std::string& option, std::string_view kind) {
  throw UsageError("train: " + option + " is for " + std::string(kind) + ", but the data set holds none");
}

void refuse_image_options(const TrainOptions& options) {
  if (options.crop_padding > 0)
    refuse("crop-padding=" + std::to_string(options.crop_padding), ImageShape::kKind);
  if (options.flip) refuse("flip=true", ImageShape::kKind);
  if (options.rotate > 0) refuse("rotate=" + number_text(options.rotate), ImageShape::kKind);
  if (options.diagnose == "hessian") refuse("diagnose=hessian", ImageShape::kKind);
}

void refuse_text_options(const TrainOptions& options) {
  if (options.vocabulary > 0) refuse("vocabulary=" + std::to_string(options.vocabulary), TextShape::kKind);
}

// The last token of a text is only a target.
std::size_t positions_of(const TrainOptions& options, std::size_t tokens, int workers) {
  return (std::max<std::size_t>(tokens, 1) - 1) / streams_of(options, workers);
}

// What a kind of data asks of the options, ...
void check_kind(const ImageShape&, const TrainOptions& options, std::size_t, int) {
  refuse_text_options(options);
}

void check_kind(const TableShape&, const TrainOptions& options, std::size_t, int) {
  refuse_image_options(options);
  refuse_text_options(options);
}

void check_kind(const TextShape&, const TrainOptions& options, std::size_t tokens, int workers) {
  refuse_image_options(options);
  check_window(options.model, options.bptt);
  if (options.vocabulary > 0 && static_cast<std::size_t>(options.vocabulary) < kFewestWords)
    throw UsageError("train: vocabulary=" + std::to_string(options.vocabulary) +
                     ", expected 0 for all words, or at least " + std::to_string(kFewestWords));
  if (options.test_samples == 1)
    throw UsageError("train: test-samples=1, expected at least 2: a token is predicted from the one before");
  if (positions_of(options, tokens, workers) == 0)
    throw UsageError("train: samples=" + std::to_string(tokens) +
                     " tokens, expected more than batch x workers = " +
                     std::to_string(streams_of(options, workers)) + ", the streams that they are cut into");
}

// ... how an epoch of it is cut, as rank 0 sees it, ...
EpochPlan plan_of(const auto&, const TrainOptions& options, std::size_t samples, int accumulate,
                  int workers) {
  return plan_epoch(samples, options.batch, accumulate, 0, workers, options.drop_last);
}

EpochPlan plan_of(const TextShape&, const TrainOptions& options, std::size_t tokens, int accumulate,
                  int workers) {
  return plan_text(positions_of(options, tokens, workers), options.batch, options.bptt, accumulate, workers,
                   options.drop_last);
}

// ... and what a batch of it holds, where that is not samples.
std::string batch_note(const auto&, const TrainOptions&) {
  return "";
}

std::string batch_note(const TextShape&, const TrainOptions& options) {
  return " windows of " + std::to_string(options.bptt) + " tokens (bptt)";
}

void check_steps(const TrainOptions& options, const DatasetFacts& data, int workers) {
  const auto own = static_cast<std::int64_t>(streams_of(options, workers)) * options.accumulate;
  for (const std::int64_t batch : {own, options.control.batch_mild, options.control.batch_strong})
    if (batch > 0 && steps_in_epoch(options, data, workers, batch) == 0)
      throw UsageError("train: drop-last leaves nothing of an epoch of " +
                       std::to_string(used_samples(options, data)) +
                       " samples, expected at least one batch of " + std::to_string(batch) +
                       std::visit([&](const auto& shape) { return batch_note(shape, options); }, data.input));
}

}  // namespace

std::int64_t steps_in_epoch(const TrainOptions& options, const DatasetFacts& data, int workers,
                            std::int64_t global_batch) {
  const std::size_t samples = used_samples(options, data);
  const auto accumulate =
      static_cast<int>(static_cast<std::size_t>(global_batch) / streams_of(options, workers));
  const EpochPlan plan = std::visit(
      [&](const auto& shape) { return plan_of(shape, options, samples, accumulate, workers); }, data.input);
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
  std::visit([&](const auto& shape) { check_kind(shape, options, used_samples(options, data), workers); },
             data.input);
  if (options.drop_last) check_steps(options, data, workers);
}

Dataset load_data(const TrainOptions& options, const std::filesystem::path& data_dir,
                  const std::filesystem::path& data_root) {
  Dataset data = load_dataset(options.data, data_dir, data_root);
  check_samples(options, facts_of(data));
  if (options.test_samples > 0) limit_tests(data, static_cast<std::size_t>(options.test_samples));
  const auto words = static_cast<std::size_t>(options.vocabulary);
  std::visit(
      [&](auto& set) {
        if constexpr (requires { limit_vocabulary(set, words); })
          if (words > 0) limit_vocabulary(set, words);
      },
      data.contents);
  return data;
}

}  // namespace accordion
