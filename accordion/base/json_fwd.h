// The name of JSON, for headers that only pass it on.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace accordion {

using Json = nlohmann::ordered_json;

}  // namespace accordion
