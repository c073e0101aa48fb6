// JSON, and options structs to it and back (options.h). A header of its own, because it costs more to read
// than everything else in this folder.
#pragma once

#include <nlohmann/json.hpp>

#include "accordion/base/json_fwd.h"
#include "accordion/base/options.h"

namespace accordion {

template <class Options>
Json to_json(Options options) {
  Json json = Json::object();
  options.fields([&](std::string_view name, auto& value, auto&&...) { json[json_key(name)] = value; });
  return json;
}

// Takes the fields that `json` has; the others keep their values.
template <class Options>
void from_json(const Json& json, Options& options) {
  options.fields([&](std::string_view name, auto& value, auto&&...) {
    if (auto found = json.find(json_key(name)); found != json.end()) found->get_to(value);
  });
}

}  // namespace accordion
