// How the parts of a run record are read: what is missing or of the wrong type is an Error that names it.
#pragma once

#include <optional>
#include <string>

#include "accordion/base/error.h"
#include "accordion/base/json.h"

namespace accordion {

inline std::string record_key(const char* key) {
  return "epoch record: \"" + std::string(key) + "\"";
}

template <class Value>
void read_required(const Json& json, const char* key, Value& value) {
  const auto found = json.find(key);
  if (found == json.end()) throw Error(record_key(key) + " is missing");
  read_value(*found, record_key(key), value);
}

template <class Value>
void read_optional(const Json& json, const char* key, Value& value) {
  if (const auto found = json.find(key); found != json.end()) read_value(*found, record_key(key), value);
}

template <class Value>
void read_optional(const Json& json, const char* key, std::optional<Value>& value) {
  value.reset();
  if (const auto found = json.find(key); found != json.end())
    read_value(*found, record_key(key), value.emplace());
}

// Null where there is none.
inline const Json* find_array(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return nullptr;
  if (!found->is_array()) refuse_json(record_key(key), *found, "an array");
  return &*found;
}

inline const Json& require_array(const Json& json, const char* key) {
  const Json* found = find_array(json, key);
  if (!found) throw Error(record_key(key) + " is missing");
  return *found;
}

inline void check_object(const Json& json, const char* what) {
  if (!json.is_object()) refuse_json(what, json, "an object");
}

}  // namespace accordion
