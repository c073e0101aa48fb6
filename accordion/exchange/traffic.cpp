#include "accordion/exchange/traffic.h"

namespace accordion {

Traffic& Traffic::operator+=(const Traffic& other) {
  payload_bytes += other.payload_bytes;
  wire_bytes += other.wire_bytes;
  paper_floats += other.paper_floats;
  control_bytes += other.control_bytes;
  return *this;
}

Traffic dense_traffic(std::uint64_t count, std::uint64_t element_bytes, int ranks) {
  const std::uint64_t payload = count * element_bytes;
  const auto n = static_cast<std::uint64_t>(ranks);
  return {.payload_bytes = payload, .wire_bytes = 2 * payload * (n - 1) / n, .paper_floats = count};
}

}  // namespace accordion
