#include "accordion/models/describe.h"

#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace accordion {

std::vector<ModelDescription> describe_models() {
  const std::pair<const char*, InputShape> data_sets[] = {
      {"fashion-mnist", {1, 28, 28, 10}}, {"cifar10", {3, 32, 32, 10}}, {"cifar100", {3, 32, 32, 100}}};
  std::vector<ModelDescription> rows;
  for (const std::string& name : model_names())
    for (const auto& [data, shape] : data_sets) {
      std::int64_t parameters = 0;
      for (const torch::Tensor& parameter : make_model(name, shape)->parameters())
        parameters += parameter.numel();
      rows.push_back({name, data, parameters});
    }
  return rows;
}

}  // namespace accordion
