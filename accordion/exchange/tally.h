// How messages count: what one rank sends, collective by collective, whether they have been sent or are only
// foreseen.
#pragma once

#include <cstdint>

#include "accordion/exchange/frame.h"

namespace accordion {

struct Tally {
  std::uint64_t payload_bytes = 0;
  std::uint64_t paper_floats = 0;
  std::uint64_t framed_bytes = 0;  // Sent to other ranks, with headers and padding.
  std::uint64_t summed_bytes = 0;  // Added up, or compared, over all ranks.

  void sum(std::uint64_t bytes, std::uint64_t values) {
    payload_bytes += bytes;
    paper_floats += values;
    summed_bytes += bytes;
  }

  // A message that every other rank gets.
  void gather(std::uint64_t bytes, int ranks) {
    payload_bytes += bytes;
    paper_floats += static_cast<std::uint64_t>(ranks) * bytes / sizeof(float);
    framed_bytes += static_cast<std::uint64_t>(ranks - 1) * frame_bytes(bytes);
  }

  // A message for one rank.
  void scatter(std::uint64_t bytes, bool to_itself) {
    payload_bytes += bytes;
    paper_floats += bytes / sizeof(float);
    if (!to_itself) framed_bytes += frame_bytes(bytes);
  }

  // Of a whole epoch, so that it does not depend on how sums were cut into buckets.
  std::uint64_t wire_bytes(int ranks) const {
    const auto n = static_cast<std::uint64_t>(ranks);
    return framed_bytes + 2 * summed_bytes * (n - 1) / n;
  }

  Tally& operator+=(const Tally& other) {
    payload_bytes += other.payload_bytes;
    paper_floats += other.paper_floats;
    framed_bytes += other.framed_bytes;
    summed_bytes += other.summed_bytes;
    return *this;
  }

  Tally times(std::int64_t steps) const {
    const auto n = static_cast<std::uint64_t>(steps);
    return {payload_bytes * n, paper_floats * n, framed_bytes * n, summed_bytes * n};
  }

  bool operator==(const Tally&) const = default;
};

}  // namespace accordion
