#include "cli/run_tensors.h"

#include <algorithm>

#include "accordion/data/dataset.h"
#include "accordion/models/describe.h"
#include "accordion/run/recorded.h"

namespace accordion::cli {
namespace {

// The vocabulary of a text may be cut.
InputShape input_of(const TrainOptions& options) {
  InputShape input = dataset_facts(options.data).input;
  if (auto* text = std::get_if<TextShape>(&input); text && options.vocabulary > 0)
    text->vocabulary = std::min(text->vocabulary, options.vocabulary);
  return input;
}

}  // namespace

std::vector<TensorInfo> run_tensors(const TrainOptions& options) {
  return model_tensors(options.model, input_of(options));
}

std::vector<TensorInfo> run_tensors(const Json& config) {
  if (auto listed = recorded_tensors(config)) return *std::move(listed);
  return run_tensors(recorded_options(config));
}

bool compresses(const ControlOptions& control, const CodecOptions& level, const TensorInfo& tensor,
                int workers) {
  return is_compressed(level, tensor.shape, workers, {.published = control.published()});
}

}  // namespace accordion::cli
