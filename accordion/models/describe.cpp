#include "accordion/models/describe.h"

#include <algorithm>

#include "accordion/data/dataset.h"
#include "accordion/ddp/ddp.h"
#include "accordion/models/network.h"
#include "accordion/models/zoo.h"
#include "accordion/run/shapes.h"

namespace accordion {
namespace {

constexpr TextShape kNominalText{28869};

bool is_matrix(const TensorInfo& tensor) {
  return tensor.shape.dims.size() >= 2;
}

ModelDescription describe(const std::string& name, const std::string& data, const InputShape& input) {
  const auto tensors = model_tensors(name, input);
  return {name, data, static_cast<std::int64_t>(parameter_count(tensors)), static_cast<int>(tensors.size()),
          static_cast<int>(std::count_if(tensors.begin(), tensors.end(), is_matrix))};
}

}  // namespace

std::vector<TensorInfo> model_tensors(const std::string& setting, const InputShape& input) {
  return exchanged_tensors(*make_model(setting, input));
}

std::vector<ModelDescription> describe_models() {
  std::vector<ModelDescription> rows;
  for (const std::string& name : model_names()) {
    for (const std::string& data : dataset_names()) {
      const InputShape input = dataset_facts(data).input;
      const auto fitting = model_names(input);
      if (std::find(fitting.begin(), fitting.end(), name) != fitting.end())
        rows.push_back(describe(name, data, input));
    }
    if (name == LstmOptions::kName) rows.push_back(describe(name, "wikitext2-nominal", kNominalText));
  }
  return rows;
}

}  // namespace accordion
