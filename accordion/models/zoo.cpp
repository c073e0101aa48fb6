#include "accordion/models/zoo.h"

#include <functional>
#include <map>

#include "accordion/base/error.h"
#include "accordion/base/names.h"
#include "accordion/models/cnn.h"
#include "accordion/models/resnet.h"

namespace accordion {
namespace {

using Make = std::function<std::shared_ptr<Network>(const InputShape&)>;

const std::map<std::string, Make>& zoo() {
  static const std::map<std::string, Make> models = {
      {"cnn", make_cnn}, {"resnet18", make_resnet18}, {"resnet20", make_resnet20}};
  return models;
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : zoo()) names.push_back(name);
  return names;
}

std::shared_ptr<Network> make_model(const std::string& name, const InputShape& input) {
  const auto found = zoo().find(name);
  if (found == zoo().end()) throw UsageError(unknown_name("model", name, model_names()));
  return found->second(input);
}

}  // namespace accordion
