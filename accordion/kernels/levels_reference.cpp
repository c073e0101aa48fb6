#include <algorithm>

#include "accordion/kernels/levels.h"

namespace accordion::kernels::reference {

void pack(const Levels& levels, int bits, std::span<std::byte> packed) noexcept {
  std::fill(packed.begin(), packed.end(), std::byte{0});
  for (std::size_t i = 0; i < packed.size() * 8 / bits; ++i)
    packed[i * bits / 8] |= static_cast<std::byte>((levels[i] & ((1 << bits) - 1)) << (i * bits % 8));
}

void unpack(std::span<const std::byte> packed, int bits, Levels& levels) noexcept {
  for (std::size_t i = 0; i < packed.size() * 8 / bits; ++i) {
    const int field = std::to_integer<int>(packed[i * bits / 8]) >> (i * bits % 8) & ((1 << bits) - 1);
    const int sign = 1 << (bits - 1);
    levels[i] = static_cast<std::int8_t>((field ^ sign) - sign);
  }
}

void sum_levels(std::span<const Scaled> ranks, std::span<float> sum) noexcept {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] = 0;
    for (const Scaled& rank : ranks) sum[i] += rank.unit * static_cast<float>(rank.levels[i]);
  }
}

void add_levels(Scaled rank, std::span<float> x) noexcept {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += rank.unit * static_cast<float>(rank.levels[i]);
}

}  // namespace accordion::kernels::reference
