// A 64-bit hash for agreement checks and seeds. Not for adversaries.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace accordion {

// Finaliser of SplitMix64: every input bit reaches every output bit.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class Hash {
 public:
  Hash& add(std::uint64_t value) {
    state_ = mix(state_ ^ value);
    return *this;
  }

  Hash& add(std::span<const std::byte> bytes) {
    add(bytes.size());
    // Four lanes, because one chain of multiplications is slower than the memory it reads.
    std::uint64_t lanes[4] = {state_, ~state_, std::rotl(state_, 16), std::rotl(state_, 32)};
    while (bytes.size() >= 32) {
      for (int lane = 0; lane < 4; ++lane) {
        std::uint64_t word;
        std::memcpy(&word, bytes.data() + 8 * lane, 8);
        lanes[lane] = std::rotl((lanes[lane] ^ word) * 0x9fb21c651e98df25ULL, 29);
      }
      bytes = bytes.subspan(32);
    }
    for (std::uint64_t lane : lanes) add(lane);
    while (!bytes.empty()) {
      std::uint64_t word = 0;
      const std::size_t taken = bytes.size() < 8 ? bytes.size() : 8;
      std::memcpy(&word, bytes.data(), taken);
      add(word);
      bytes = bytes.subspan(taken);
    }
    return *this;
  }

  Hash& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }

  std::uint64_t value() const { return mix(state_); }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace accordion
