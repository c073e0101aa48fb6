// How the parts of a run record are read: what is missing or of the wrong type is an Error that names it.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "accordion/base/error.h"
#include "accordion/base/json.h"

namespace accordion {

template <class Value>
void read_value(const Json& json, const char* key, Value& value) {
  constexpr bool kReal = std::is_same_v<Value, double>;
  constexpr bool kText = std::is_same_v<Value, std::string>;
  if constexpr (kReal) {
    if (json.is_null()) {
      value = std::numeric_limits<double>::quiet_NaN();
      return;
    }
  }
  const bool fits = kText ? json.is_string()
                    : kReal
                        ? json.is_number()
                        : json.is_number_integer() && (std::is_signed_v<Value> || json.is_number_unsigned());
  if (!fits)
    throw Error("epoch record: \"" + std::string(key) + "\" is " + json.dump() + ", expected " +
                (kText                     ? "text"
                 : kReal                   ? "a number"
                 : std::is_signed_v<Value> ? "a whole number"
                                           : "a whole number of at least 0"));
  json.get_to(value);
}

template <class Value>
void read_required(const Json& json, const char* key, Value& value) {
  const auto found = json.find(key);
  if (found == json.end()) throw Error("epoch record: \"" + std::string(key) + "\" is missing");
  read_value(*found, key, value);
}

template <class Value>
void read_optional(const Json& json, const char* key, Value& value) {
  if (const auto found = json.find(key); found != json.end()) read_value(*found, key, value);
}

template <class Value>
void read_optional(const Json& json, const char* key, std::optional<Value>& value) {
  value.reset();
  if (const auto found = json.find(key); found != json.end()) read_value(*found, key, value.emplace());
}

inline const Json& require_array(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) throw Error("epoch record: \"" + std::string(key) + "\" is missing");
  if (!found->is_array())
    throw Error("epoch record: \"" + std::string(key) + "\" is " + found->dump() + ", expected an array");
  return *found;
}

inline void check_object(const Json& json, const char* what) {
  if (!json.is_object()) throw Error(std::string(what) + " is " + json.dump() + ", expected an object");
}

}  // namespace accordion
