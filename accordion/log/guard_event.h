// One change that the guard made, for the record: enough to make it again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accordion/base/json_fwd.h"

namespace accordion {

struct GuardEvent {
  std::int64_t step = 0;  // Of the whole run: the first one that it holds for.
  // probe: for a few steps, to learn what they cost. decide, fall back, go on (after a probe): from then on. check: a decision
  // is held against what came of it; nothing changes.
  std::string event;
  std::vector<int> levels =
      {};  // Per tensor, -1 for dense; empty where nothing changes. Of a probe that has -1 everywhere: all
           // that is owed waits.
  std::optional<double> predicted_ms = {}, measured_ms = {};
  std::string reason = {};
  // Of a decision: by the step's parts alone, where what was probed has shown otherwise.
  std::optional<double> simulated_ms = {};
};

Json to_json(const GuardEvent& event);
void from_json(const Json& json, GuardEvent& event);

}  // namespace accordion
