#include <bit>

#include "accordion/kernels/draws.h"

namespace accordion::kernels::reference {

void draw(RandomKey key, std::uint64_t chunk, Draws& draws) noexcept {
  for (std::size_t lane = 0; lane < kDrawLanes; ++lane) {
    const std::uint64_t block = kDrawLanes * chunk + lane;
    const auto words = r123::Philox4x32_R<7>()(
        {{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0}},
        {{static_cast<std::uint32_t>(key.value), static_cast<std::uint32_t>(key.value >> 32)}});
    std::uint64_t s0 = words[0] | std::uint64_t{words[1]} << 32,
                  s1 = words[2] | std::uint64_t{words[3]} << 32;
    for (std::size_t step = 0; step < kDrawSteps; ++step) {
      const std::uint64_t sum = s0 + s1, x = s0 ^ s1;
      for (std::size_t part = 0; part < 4; ++part)
        draws[32 * step + 4 * lane + part] = static_cast<std::uint16_t>(sum >> 16 * part);
      s0 = std::rotl(s0, 24) ^ x ^ x << 16;
      s1 = std::rotl(x, 37);
    }
  }
}

}  // namespace accordion::kernels::reference
