// Counter-based random numbers: draw i is a hash of the key and i (SplitMix64). They are the same on every
// rank and with every compiler, which the standard library's distributions are not. Codecs draw from
// base/random.h; what is drawn here, the order of samples and data sets that are made up, keeps its bits, on
// which records of runs depend.
#pragma once

#include <cstdint>

#include "accordion/base/hash.h"

namespace accordion {

class Draws {
 public:
  explicit Draws(std::uint64_t key) : state_(key) {}

  std::uint64_t next() {
    const std::uint64_t bits = mix(state_);
    state_ += 0x9e3779b97f4a7c15ULL;
    return bits;
  }

  // In [0, n). The bias of multiply-and-shift, below n / 2^32, is too small to matter here.
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((next() >> 32) * n >> 32); }

  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1)

 private:
  std::uint64_t state_;
};

}  // namespace accordion
