// How long the parts of one bucket's exchange took on this rank.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "accordion/compress/compressor.h"

namespace accordion {

using StepClock = std::chrono::steady_clock;

inline double seconds_between(StepClock::time_point begin, StepClock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// A layer in a round: what it contributed, and what its codec took for it. Layers that are worked on side by side share
// the time that they took together.
struct LayerTime {
  int tensor, round;
  Pattern pattern;
  std::size_t bytes;  // Framed, where frames travel; of a scattered round, what others get.
  double encode = 0, decode = 0;
};

struct CollectiveTime {
  Pattern pattern;
  std::size_t bytes;  // As a LayerTime's.
  StepClock::time_point begin, end;

  double seconds() const { return seconds_between(begin, end); }
};

struct BucketTimes {
  StepClock::time_point prepare_begin = {}, prepare_end = {}, end = {};
  std::vector<LayerTime> layers = {};  // Of those that are compressed, in each round.
  std::vector<CollectiveTime> collectives = {};

  double prepare() const { return seconds_between(prepare_begin, prepare_end); }
};

}  // namespace accordion
