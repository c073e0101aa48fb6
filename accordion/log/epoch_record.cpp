#include "accordion/log/epoch_record.h"

#include "accordion/base/json.h"
#include "accordion/log/record_json.h"

namespace accordion {
namespace {

void read_optional(const Json& json, const char* key, std::vector<double>& values) {
  values.clear();
  if (const Json* found = find_array(json, key)) read_value(*found, record_key(key), values);
}

void read_layers(const Json& json, std::vector<LayerRecord>& layers) {
  layers.clear();
  for (const Json& layer : require_array(json, "layers")) from_json(layer, layers.emplace_back());
}

Json layers_json(const std::vector<LayerRecord>& layers) {
  Json json = Json::array();
  for (const LayerRecord& layer : layers) json.push_back(to_json(layer));
  return json;
}

}  // namespace

std::size_t total_elements(const std::vector<LayerRecord>& layers) {
  std::int64_t count = 0;
  for (const LayerRecord& layer : layers) count += layer.elements;
  return static_cast<std::size_t>(count);
}

Json to_json(const LayerRecord& layer) {
  Json json = {{"name", layer.name},   {"elements", layer.elements}, {"norm", layer.norm},
               {"level", layer.level}, {"codec", layer.codec},       {"reason", layer.reason}};
  if (layer.may) json["may"] = *layer.may;
  if (layer.payload_bytes) json["payload_bytes"] = *layer.payload_bytes;
  if (layer.squares) json["squares"] = *layer.squares;
  if (!layer.level_errors.empty()) {
    json["level_errors"] = layer.level_errors;
    json["level_bytes"] = layer.level_bytes;
  }
  return json;
}

Json to_json(const StepSplit& split) {
  return {{"compute_ms", split.compute_ms},
          {"encode_ms", split.encode_ms},
          {"wire_ms", split.wire_ms},
          {"decode_ms", split.decode_ms},
          {"busy_wire_ms", split.busy_wire_ms}};
}

Json to_json(const WindowRecord& window) {
  return {{"window", window.window},
          {"lr", window.lr},
          {"steps", window.steps},
          {"layers", layers_json(window.layers)}};
}

Json to_json(const EpochRecord& record) {
  Json json = {{"epoch", record.epoch},
               {"lr", record.lr},
               {"global_batch", record.global_batch},
               {"train_loss", record.train_loss},
               {"test_loss", record.test_loss}};
  if (record.schedule_lr) json["schedule_lr"] = *record.schedule_lr;
  if (record.batch_reason) json["batch_reason"] = *record.batch_reason;
  if (record.test_accuracy) json["test_accuracy"] = *record.test_accuracy;
  if (record.test_perplexity) json["test_perplexity"] = *record.test_perplexity;
  json["seconds"] = record.seconds;
  json["steps"] = record.steps;
  json["dropped_steps"] = record.dropped_steps;
  json["payload_bytes"] = record.payload_bytes;
  json["wire_bytes"] = record.wire_bytes;
  json["control_bytes"] = record.control_bytes;
  json["sent_bytes"] = record.sent_bytes;
  json["paper_floats"] = record.paper_floats;
  json["entries"] = record.entries;
  json["saturated"] = record.saturated;
  json["input_wait_seconds"] = record.input_wait_seconds;
  json["hidden_share"] = record.hidden_share;
  if (record.waited_for_rank) json["waited_for_rank"] = *record.waited_for_rank;
  if (record.waited_seconds) json["waited_seconds"] = *record.waited_seconds;
  if (record.step_split) json["step_split"] = to_json(*record.step_split);
  if (record.hessian_eigenvalue) json["hessian_eigenvalue"] = *record.hessian_eigenvalue;
  json["layers"] = layers_json(record.layers);
  for (const WindowRecord& window : record.windows) json["windows"].push_back(to_json(window));
  for (const GuardEvent& event : record.guard) json["guard"].push_back(to_json(event));
  return json;
}

void from_json(const Json& json, LayerRecord& layer) {
  check_object(json, "layer record");
  read_required(json, "name", layer.name);
  read_count(json, "elements", layer.elements);
  read_required(json, "norm", layer.norm);
  read_required(json, "level", layer.level);
  read_required(json, "codec", layer.codec);
  read_required(json, "reason", layer.reason);
  read_optional(json, "may", layer.may);
  read_optional(json, "payload_bytes", layer.payload_bytes);
  read_optional(json, "squares", layer.squares);
  read_optional(json, "level_errors", layer.level_errors);
  read_optional(json, "level_bytes", layer.level_bytes);
}

void from_json(const Json& json, StepSplit& split) {
  check_object(json, "step_split");
  read_required(json, "compute_ms", split.compute_ms);
  read_required(json, "encode_ms", split.encode_ms);
  read_required(json, "wire_ms", split.wire_ms);
  read_required(json, "decode_ms", split.decode_ms);
  read_required(json, "busy_wire_ms", split.busy_wire_ms);
}

void from_json(const Json& json, WindowRecord& window) {
  check_object(json, "window record");
  read_required(json, "window", window.window);
  read_required(json, "lr", window.lr);
  read_required(json, "steps", window.steps);
  read_layers(json, window.layers);
}

void from_json(const Json& json, EpochRecord& record) {
  check_object(json, "epoch record");
  read_required(json, "epoch", record.epoch);
  read_required(json, "lr", record.lr);
  read_optional(json, "schedule_lr", record.schedule_lr);
  read_required(json, "global_batch", record.global_batch);
  read_optional(json, "batch_reason", record.batch_reason);
  read_required(json, "train_loss", record.train_loss);
  read_required(json, "test_loss", record.test_loss);
  read_optional(json, "test_accuracy", record.test_accuracy);
  read_optional(json, "test_perplexity", record.test_perplexity);
  read_required(json, "seconds", record.seconds);
  read_required(json, "steps", record.steps);
  read_count(json, "steps", record.steps);
  read_count(json, "dropped_steps", record.dropped_steps);
  read_required(json, "payload_bytes", record.payload_bytes);
  read_required(json, "wire_bytes", record.wire_bytes);
  read_optional(json, "control_bytes", record.control_bytes);
  read_optional(json, "sent_bytes", record.sent_bytes);
  read_required(json, "paper_floats", record.paper_floats);
  read_optional(json, "entries", record.entries);
  read_optional(json, "saturated", record.saturated);
  read_optional(json, "hessian_eigenvalue", record.hessian_eigenvalue);
  read_optional(json, "input_wait_seconds", record.input_wait_seconds);
  read_optional(json, "hidden_share", record.hidden_share);
  read_optional(json, "waited_for_rank", record.waited_for_rank);
  read_optional(json, "waited_seconds", record.waited_seconds);
  record.step_split.reset();
  if (json.contains("step_split")) from_json(json["step_split"], record.step_split.emplace());
  read_layers(json, record.layers);
  record.windows.clear();
  if (const Json* windows = find_array(json, "windows"))
    for (const Json& window : *windows) from_json(window, record.windows.emplace_back());
  record.guard.clear();
  if (const Json* events = find_array(json, "guard"))
    for (const Json& event : *events) from_json(event, record.guard.emplace_back());
}

std::vector<EpochRecord> epoch_records(const std::vector<Json>& lines, const std::string& file) {
  std::vector<EpochRecord> records;
  try {
    for (const Json& line : lines) from_json(line, records.emplace_back());
  } catch (const Error& error) {
    throw Error(file + ": line " + std::to_string(records.size()) + ": " + error.what());
  }
  return records;
}

}  // namespace accordion
