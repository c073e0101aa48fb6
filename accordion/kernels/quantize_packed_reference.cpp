#include "accordion/kernels/levels.h"
#include "accordion/kernels/quantize.h"
#include "accordion/kernels/quantize_packed.h"

namespace accordion::kernels::reference {

void quantize_packed(RandomKey key, std::uint64_t chunk, std::span<const float> x,
                     std::span<const float> scales, int bits, std::byte* packed) noexcept {
  const std::size_t bytes = kChunk * static_cast<std::size_t>(bits) / 8;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    Draws draws;
    Levels levels = {};
    draw(key, chunk + i, draws);
    if (scales[i] > 0)
      quantize(x.subspan(i * kChunk, kChunk), scales[i], (1 << (bits - 1)) - 1, draws.data(), levels.data());
    pack(levels, bits, {packed + i * bytes, bytes});
  }
}

}  // namespace accordion::kernels::reference
