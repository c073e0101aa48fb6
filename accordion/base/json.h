// JSON, and options structs to it and back (options.h). A header of its own, because it costs more to read
// than everything else in this folder.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/base/json_fwd.h"
#include "accordion/base/options.h"

namespace accordion {

inline constexpr std::size_t kMostJsonBytes = 64 << 20;
inline constexpr std::size_t kDeepestJson = 100;

// What a file or a peer wrote. Throws Error, led by `what`, for text that is no JSON, and for text that would take more
// memory, stack or time than it can be worth: too long, nested too deeply, or objects of very many keys.
Json parse_json(std::string_view text, const std::string& what);
Json parse_json_object(std::string_view text, const std::string& what);

// A value for an error message: what it is, or the beginning of what it says.
std::string shown(const Json& json);

// Throws Error: `what` ("epoch record: \"lr\"") is not what was expected.
[[noreturn]] void refuse_json(const std::string& what, const Json& json, std::string_view expected);

// Takes a value of exactly that type, which holds it. A number that is null is none: what is not finite is written so.
template <class Value>
void read_value(const Json& json, const std::string& what, Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    if (!json.is_boolean()) refuse_json(what, json, "true or false");
    json.get_to(value);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    if (!json.is_string()) refuse_json(what, json, "text");
    json.get_to(value);
  } else if constexpr (std::is_floating_point_v<Value>) {
    if (!json.is_number() && !json.is_null()) refuse_json(what, json, "a number");
    value = json.is_null() ? std::numeric_limits<Value>::quiet_NaN() : json.get<Value>();
  } else if constexpr (std::is_integral_v<Value>) {
    if (!json.is_number_integer() || (std::is_unsigned_v<Value> && !json.is_number_unsigned()))
      refuse_json(what, json, std::is_unsigned_v<Value> ? "a whole number of at least 0" : "a whole number");
    const bool fits = json.is_number_unsigned() ? std::in_range<Value>(json.get<std::uint64_t>())
                                                : std::in_range<Value>(json.get<std::int64_t>());
    if (!fits) refuse_json(what, json, "a number that fits its type");
    json.get_to(value);
  } else {  // A list.
    if (!json.is_array()) refuse_json(what, json, "a list");
    value.clear();
    for (const Json& item : json) read_value(item, what, value.emplace_back());
  }
}

template <class Options>
Json to_json(Options options) {
  Json json = Json::object();
  options.fields([&](std::string_view name, auto& value, auto&&...) { json[json_key(name)] = value; });
  return json;
}

// Takes the fields that `json` has; the others keep their values. Throws Error for a value of another type.
template <class Options>
void from_json(const Json& json, Options& options) {
  if (!json.is_object()) refuse_json("what should hold options", json, "an object");
  options.fields([&](std::string_view name, auto& value, auto&&...) {
    const std::string key = json_key(name);
    if (auto found = json.find(key); found != json.end()) read_value(*found, "option \"" + key + "\"", value);
  });
}

}  // namespace accordion
