#include "accordion/log/guard_event.h"

#include "accordion/base/json.h"
#include "accordion/log/record_json.h"

namespace accordion {

Json to_json(const GuardEvent& event) {
  Json json = {{"step", event.step}, {"event", event.event}};
  if (!event.levels.empty()) json["levels"] = event.levels;
  if (event.predicted_ms) json["predicted_ms"] = *event.predicted_ms;
  if (event.simulated_ms) json["simulated_ms"] = *event.simulated_ms;
  if (event.measured_ms) json["measured_ms"] = *event.measured_ms;
  json["reason"] = event.reason;
  return json;
}

void from_json(const Json& json, GuardEvent& event) {
  check_object(json, "guard event");
  read_required(json, "step", event.step);
  read_required(json, "event", event.event);
  event.levels.clear();
  if (const Json* levels = find_array(json, "levels"))
    read_value(*levels, record_key("levels"), event.levels);
  read_optional(json, "predicted_ms", event.predicted_ms);
  read_optional(json, "simulated_ms", event.simulated_ms);
  read_optional(json, "measured_ms", event.measured_ms);
  read_required(json, "reason", event.reason);
}

}  // namespace accordion
