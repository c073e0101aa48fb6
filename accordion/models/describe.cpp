#include "accordion/models/describe.h"

#include <algorithm>

#include "accordion/data/dataset.h"
#include "accordion/ddp/ddp.h"
#include "accordion/models/network.h"
#include "accordion/models/shapes.h"
#include "accordion/models/zoo.h"

namespace accordion {

std::vector<TensorInfo> model_tensors(const std::string& setting, const InputShape& input) {
  return exchanged_tensors(*make_model(setting, input));
}

std::vector<ModelDescription> describe_models() {
  const char* const data_sets[] = {"fashion-mnist", "cifar10", "cifar100"};
  std::vector<ModelDescription> rows;
  for (const std::string& name : model_names())
    for (const char* const data : data_sets) {
      const auto tensors = model_tensors(name, dataset_facts(data).input);
      const auto compressible = std::count_if(tensors.begin(), tensors.end(), [](const TensorInfo& tensor) {
        return tensor.shape.dims.size() >= 2;
      });
      rows.push_back({name, data, static_cast<std::int64_t>(parameter_count(tensors)),
                      static_cast<int>(tensors.size()), static_cast<int>(compressible)});
    }
  return rows;
}

}  // namespace accordion
