// What a run comes to: the figures of summary.json.
#pragma once

#include <vector>

#include "accordion/adapt/control.h"
#include "accordion/base/json_fwd.h"
#include "accordion/log/epoch_record.h"

namespace accordion {

Json summarise(const std::vector<EpochRecord>& epochs, const ControlOptions& control);

}  // namespace accordion
