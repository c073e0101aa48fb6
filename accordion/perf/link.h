// How long collectives take: a line through (bytes, seconds), or two where small and large messages differ.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>

namespace accordion::perf {

// A sum's bytes are those of its buffer, a gather's what one rank contributes, a scatter's what one rank hands out
// to all others.
enum class Collective { kSum, kGather, kScatter };
inline constexpr std::size_t kCollectives = 3;

// What one rank must send for it.
double wire_bytes(Collective collective, double bytes, int ranks);

struct Line {
  double seconds = 0, seconds_per_byte = 0;

  double at(double bytes) const { return seconds + seconds_per_byte * bytes; }
};

struct Cost {
  Line small = {}, large = {};
  double large_from = std::numeric_limits<double>::infinity();  // Bytes. Without `large`: infinity.

  // Nothing to move takes no time: there is no call then.
  double seconds(double bytes) const {
    return bytes <= 0 ? 0 : (bytes < large_from ? small : large).at(bytes);
  }
};

struct Link {
  std::array<Cost, kCollectives> costs = {};
  std::optional<Cost> dense =
      {};  // Sums of buckets that go dense as a whole, where these take another way: on a device.

  const Cost& operator[](Collective collective) const { return costs[static_cast<std::size_t>(collective)]; }
  Cost& operator[](Collective collective) { return costs[static_cast<std::size_t>(collective)]; }
};

struct Sample {
  double bytes, seconds;
};

struct Fit {
  Cost cost = {};
  double r_squared = 0;
  int samples = 0;
};

// Weighs relative errors, not absolute ones: latencies matter as much as bandwidths. No line falls, none starts below 0, and
// the second one is used only where it pays for itself; where they meet, time does not fall. Samples need not be sorted; of
// one size only, the line is their median at any size below and grows in proportion above. No samples: free.
Fit fit_cost(std::span<const Sample> samples);

}  // namespace accordion::perf
