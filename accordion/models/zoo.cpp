#include "accordion/models/zoo.h"

#include <utility>

#include "accordion/base/error.h"
#include "accordion/base/names.h"
#include "accordion/base/options.h"

namespace accordion {
namespace {

// Calls visit(Options{}) for each alternative, in order.
template <class Visit, std::size_t... I>
void for_each_model(Visit&& visit, std::index_sequence<I...>) {
  (visit(std::variant_alternative_t<I, ModelOptions>{}), ...);
}

template <class Visit>
void for_each_model(Visit&& visit) {
  for_each_model(visit, std::make_index_sequence<std::variant_size_v<ModelOptions>>{});
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for_each_model([&](auto options) { names.emplace_back(options.kName); });
  return names;
}

ModelOptions parse_model(std::string_view setting) {
  const std::string_view name = setting.substr(0, setting.find(':'));
  const std::string_view fields = setting.substr(std::min(setting.size(), name.size() + 1));
  ModelOptions result;
  bool known = false;
  for_each_model([&](auto options) {
    if (options.kName != name) return;
    known = true;
    parse_fields(name, fields, options);
    result = options;
  });
  if (!known) throw UsageError(unknown_name("model", name, model_names()));
  return result;
}

std::shared_ptr<Network> make_model(const std::string& setting, const InputShape& input) {
  return std::visit([&](const auto& options) { return make(options, input); }, parse_model(setting));
}

}  // namespace accordion
