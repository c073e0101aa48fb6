// A setting: one of several option structs by its name, written `name:option=value,option=value`, or just
// `name`. Codecs and models are named like this.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "accordion/base/options.h"

namespace accordion {

// Calls visit(Options{}) for each alternative of the variant, in order.
template <class Setting, class Visit>
void for_each_alternative(Visit&& visit) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (visit(std::variant_alternative_t<I, Setting>{}), ...);
  }
  (std::make_index_sequence<std::variant_size_v<Setting>>{});
}

template <class Setting>
std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for_each_alternative<Setting>([&](auto options) { names.emplace_back(options.kName); });
  return names;
}

// Throws UsageError for an unknown name or option and for a value out of range; `kind` is what is named: a
// "codec".
template <class Setting>
Setting parse_setting(std::string_view kind, std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  const std::string_view fields = text.substr(std::min(text.size(), name.size() + 1));
  Setting result;
  bool known = false;
  for_each_alternative<Setting>([&](auto options) {
    if (options.kName != name) return;
    known = true;
    parse_fields(name, fields, options);
    result = options;
  });
  if (!known) throw UsageError(unknown_name(kind, name, setting_names<Setting>()));
  return result;
}

}  // namespace accordion
