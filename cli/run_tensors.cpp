#include "cli/run_tensors.h"

#include <algorithm>

#include "accordion/base/json.h"
#include "accordion/data/dataset.h"
#include "accordion/models/describe.h"

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
  const auto listed = config.find("tensors");
  if (listed == config.end()) {
    TrainOptions options;
    from_json(config.at("options"), options);
    return run_tensors(options);
  }
  std::vector<TensorInfo> tensors;
  try {
    for (const Json& tensor : *listed)
      tensors.push_back({tensor.at("name"), {tensor.at("shape").get<std::vector<std::int64_t>>()}});
  } catch (const Json::exception& error) {
    throw UsageError(std::string("config.json: tensors: ") + error.what() +
                     ", expected a list of objects with name and shape");
  }
  return tensors;
}

bool compresses(const ControlOptions& control, const CodecOptions& level, const TensorInfo& tensor,
                int workers) {
  return make_compressor(level, tensor.shape, workers, {.published = control.published()}) != nullptr;
}

}  // namespace accordion::cli
