// What the epochs of a run come to together.
#pragma once

#include <cstdint>
#include <vector>

#include "accordion/log/epoch_record.h"

namespace accordion {

struct RunTotals {
  double seconds = 0;  // Of the training loop.
  std::int64_t steps = 0;
  std::uint64_t payload_bytes = 0, wire_bytes = 0, paper_floats = 0;  // Of one rank,
  std::uint64_t entries = 0;                                          // and these in sparse messages.
};

RunTotals total(const std::vector<EpochRecord>& epochs);

}  // namespace accordion
