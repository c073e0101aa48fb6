// Exact accounting of what one rank sends.
#pragma once

#include <cstdint>

namespace accordion {

struct Traffic {
  std::uint64_t payload_bytes = 0;  // What the rank contributes, without headers and padding.
  std::uint64_t wire_bytes = 0;     // What crosses its network card for it, by the collective's formula.
  std::uint64_t paper_floats = 0;   // The count of the published tables.
  std::uint64_t control_bytes = 0;  // Flags, sizes, hashes: payload of no gradient.

  Traffic& operator+=(const Traffic& other);
  bool operator==(const Traffic&) const = default;
};

// A dense sum over `ranks` of `count` elements, as a ring would move them: 2S(N-1)/N.
Traffic dense_traffic(std::uint64_t count, std::uint64_t element_bytes, int ranks);

}  // namespace accordion
