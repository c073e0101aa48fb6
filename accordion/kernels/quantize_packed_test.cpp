// On every instruction set this machine has: the bits of drawing, quantizing and packing one after the other.
#include "accordion/kernels/quantize_packed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "accordion/base/noise_testing.h"
#include "accordion/kernels/quantize.h"
#include "accordion/kernels/targets_testing.h"

namespace accordion::kernels {
namespace {

class QuantizePacked : public EachTarget {};

TEST_P(QuantizePacked, MatchesTheReference) {
  for (int bits : {2, 4, 8})
    for (std::size_t chunks : {0, 1, 2, 9})
      for (float size : {1.0f, 1e-42f, 1e-36f, 1e-18f, 1e30f}) {
        // Offset by one element, so that nothing may rely on alignment.
        std::vector<float> values = heavy_tailed(chunks * kChunk + 1, 1, 3), scales;
        for (float& value : values) value *= size;
        const std::span<const float> x = std::span<const float>(values).subspan(1);
        for (std::size_t i = 0; i < chunks; ++i) {
          // The largest magnitude, or beyond it as a norm is.
          const float largest = largest_magnitude(x.subspan(i * kChunk, kChunk));
          scales.push_back(i % 3 == 1 ? 4 * largest : largest);
        }
        const std::size_t bytes = chunks * kChunk * static_cast<std::size_t>(bits) / 8;
        std::vector<std::byte> fast(bytes + 1, std::byte{0x5a}), slow(bytes + 1, std::byte{0x5a});
        quantize_packed(RandomKey{0x123456789abcdef}, 0xfffffffe, x, scales, bits, fast.data());
        reference::quantize_packed(RandomKey{0x123456789abcdef}, 0xfffffffe, x, scales, bits, slow.data());
        ASSERT_EQ(fast, slow) << bits << " " << chunks << " " << size;
      }
}

// An entry that equals the scale must not round beyond it, whatever the quotient's rounding does.
TEST_P(QuantizePacked, KeepsTheLargest) {
  for (int bits : {2, 4, 8})
    for (int k = 0; k < 1000; ++k) {
      const float scale = std::exp2(static_cast<float>(k % 40 - 20)) * (1 + static_cast<float>(k) * 0.00097f);
      std::vector<float> x(kChunk, scale);
      for (std::size_t i = 1; i < kChunk; i += 2) x[i] = -scale;
      std::vector<std::byte> fast(kChunk * static_cast<std::size_t>(bits) / 8), slow(fast);
      quantize_packed(RandomKey{7}, static_cast<std::uint64_t>(k), x, std::vector<float>{scale}, bits,
                      fast.data());
      reference::quantize_packed(RandomKey{7}, static_cast<std::uint64_t>(k), x, std::vector<float>{scale},
                                 bits, slow.data());
      ASSERT_EQ(fast, slow) << bits << " " << scale;
    }
}

TEST_P(QuantizePacked, GivesZerosWithoutAScale) {
  std::vector<float> x(kChunk, std::nanf(""));
  for (int bits : {2, 4, 8}) {
    std::vector<std::byte> packed(kChunk * static_cast<std::size_t>(bits) / 8, std::byte{1});
    quantize_packed(RandomKey{7}, 0, x, std::vector<float>{0}, bits, packed.data());
    EXPECT_EQ(packed, std::vector<std::byte>(packed.size()));
  }
}

ACCORDION_ON_EACH_TARGET(QuantizePacked);

}  // namespace
}  // namespace accordion::kernels
