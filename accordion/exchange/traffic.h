// Exact accounting of what one rank sends.
#pragma once

#include <cstdint>
#include <vector>

namespace accordion {

struct Traffic {
  std::uint64_t payload_bytes = 0;  // What the rank contributes, without headers and padding.
  std::uint64_t wire_bytes = 0;     // Sent for that: 2S(N-1)/N for a sum, frames times N-1 for a gather.
  std::uint64_t paper_floats = 0;   // The count of the published tables.
  std::uint64_t entries = 0;        // In sparse messages.
  std::uint64_t saturated = 0;      // Values beyond the range of 16 bits, sent as its largest.
  std::uint64_t control_bytes = 0;  // Flags, sizes, hashes: payload of no gradient.

  bool operator==(const Traffic&) const = default;
};

// What one epoch leaves behind, for the record.
struct EpochStats {
  std::int64_t steps = 0;
  std::int64_t dropped_steps = 0;  // In which a rank had values that are not finite.
  Traffic traffic;
  std::vector<std::uint64_t> tensor_bytes = {};  // Of its payload, tensor by tensor.
};

}  // namespace accordion
