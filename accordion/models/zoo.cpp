#include "accordion/models/zoo.h"

#include "accordion/base/setting.h"

namespace accordion {

std::vector<std::string> model_names() {
  return setting_names<ModelOptions>();
}

ModelOptions parse_model(std::string_view setting) {
  return parse_setting<ModelOptions>("model", setting);
}

std::shared_ptr<Network> make_model(const std::string& setting, const InputShape& input) {
  return std::visit([&](const auto& options) { return make(options, input); }, parse_model(setting));
}

}  // namespace accordion
