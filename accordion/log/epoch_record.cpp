#include "accordion/log/epoch_record.h"

#include <limits>

namespace accordion {
namespace {

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

void read_optional(const Json& json, const char* key, std::optional<double>& value) {
  value.reset();
  if (const auto found = json.find(key); found != json.end()) read_value(*found, key, value.emplace());
}

void check_object(const Json& json, const char* what) {
  if (!json.is_object()) throw Error(std::string(what) + " is " + json.dump() + ", expected an object");
}

}  // namespace

Json to_json(const LayerRecord& layer) {
  return {{"name", layer.name},
          {"norm", layer.norm},
          {"level", layer.level},
          {"codec", layer.codec},
          {"reason", layer.reason}};
}

Json to_json(const EpochRecord& record) {
  Json json = {{"epoch", record.epoch},
               {"lr", record.lr},
               {"global_batch", record.global_batch},
               {"train_loss", record.train_loss},
               {"test_loss", record.test_loss}};
  if (record.test_accuracy) json["test_accuracy"] = *record.test_accuracy;
  if (record.test_perplexity) json["test_perplexity"] = *record.test_perplexity;
  json["seconds"] = record.seconds;
  json["steps"] = record.steps;
  json["dropped_steps"] = record.dropped_steps;
  json["payload_bytes"] = record.payload_bytes;
  json["wire_bytes"] = record.wire_bytes;
  json["control_bytes"] = record.control_bytes;
  json["paper_floats"] = record.paper_floats;
  json["input_wait_seconds"] = record.input_wait_seconds;
  json["hidden_share"] = record.hidden_share;
  Json& layers = json["layers"] = Json::array();
  for (const LayerRecord& layer : record.layers) layers.push_back(to_json(layer));
  return json;
}

void from_json(const Json& json, LayerRecord& layer) {
  check_object(json, "layer record");
  read_required(json, "name", layer.name);
  read_required(json, "norm", layer.norm);
  read_required(json, "level", layer.level);
  read_required(json, "codec", layer.codec);
  read_required(json, "reason", layer.reason);
}

void from_json(const Json& json, EpochRecord& record) {
  check_object(json, "epoch record");
  read_required(json, "epoch", record.epoch);
  read_required(json, "lr", record.lr);
  read_required(json, "global_batch", record.global_batch);
  read_required(json, "train_loss", record.train_loss);
  read_required(json, "test_loss", record.test_loss);
  read_optional(json, "test_accuracy", record.test_accuracy);
  read_optional(json, "test_perplexity", record.test_perplexity);
  read_required(json, "seconds", record.seconds);
  read_required(json, "steps", record.steps);
  read_optional(json, "dropped_steps", record.dropped_steps);
  read_required(json, "payload_bytes", record.payload_bytes);
  read_required(json, "wire_bytes", record.wire_bytes);
  read_optional(json, "control_bytes", record.control_bytes);
  read_required(json, "paper_floats", record.paper_floats);
  read_optional(json, "input_wait_seconds", record.input_wait_seconds);
  read_optional(json, "hidden_share", record.hidden_share);
  const auto layers = json.find("layers");
  if (layers == json.end()) throw Error("epoch record: \"layers\" is missing");
  if (!layers->is_array())
    throw Error("epoch record: \"layers\" is " + layers->dump() + ", expected an array");
  record.layers.clear();
  for (const Json& layer : *layers) from_json(layer, record.layers.emplace_back());
}

}  // namespace accordion
