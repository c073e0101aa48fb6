// How the parts of a run record are read: what is missing or of the wrong type is an Error that names it.
#pragma once

#include <cstdint>
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

// Of things that are counted one by one, so few that no file holds enough of them to overflow their sum.
inline void read_count(const Json& json, const char* key, std::int64_t& count) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const auto found = json.find(key);
  if (found == json.end()) return;
  read_value(*found, record_key(key), count);
  if (count < 0 || count > kMost)
    refuse_json(record_key(key), *found, "a number from 0 to " + std::to_string(kMost));
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
