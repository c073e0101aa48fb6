// Counter-based random numbers (Philox4x32-10): the i-th block of a key is a function of key and i alone, so
// draws do not depend on the order in which, or the thread on which, they are made.
#pragma once

#include <Random123/philox.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

namespace accordion {

struct RandomKey {
  std::uint64_t value;

  // Four 32-bit words.
  std::array<std::uint32_t, 4> block(std::uint64_t i) const {
    const auto words =
        r123::Philox4x32()({{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), 0, 0}},
                           {{static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)}});
    return {words[0], words[1], words[2], words[3]};
  }
};

// A stream of draws from one key.
class RandomStream {
 public:
  explicit RandomStream(RandomKey key) : key_(key) {}

  std::uint32_t next() {
    if (used_ == 4) {
      words_ = key_.block(blocks_++);
      used_ = 0;
    }
    return words_[used_++];
  }

  // Uniform in [0, 1), 24 bits.
  float uniform() { return static_cast<float>(next() >> 8) * 0x1p-24f; }

  // Uniform in 0 .. bound - 1 (bound > 0), without bias: draws that would favour small values are drawn
  // again.
  std::uint32_t below(std::uint32_t bound) {
    const std::uint32_t limit = static_cast<std::uint32_t>(-bound) % bound;
    while (true) {
      const std::uint64_t product = std::uint64_t{next()} * bound;
      if (static_cast<std::uint32_t>(product) >= limit) return static_cast<std::uint32_t>(product >> 32);
    }
  }

  // Standard normal (Box-Muller).
  void normal(std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); i += 2) {
      const double radius = std::sqrt(-2 * std::log((next() + 1.0) * 0x1p-32));
      const double angle = 2 * std::numbers::pi * next() * 0x1p-32;
      out[i] = static_cast<float>(radius * std::cos(angle));
      if (i + 1 < out.size()) out[i + 1] = static_cast<float>(radius * std::sin(angle));
    }
  }

 private:
  RandomKey key_;
  std::uint64_t blocks_ = 0;
  std::array<std::uint32_t, 4> words_{};
  unsigned used_ = 4;
};

}  // namespace accordion
