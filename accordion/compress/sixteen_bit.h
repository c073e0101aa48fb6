// What fp16 and bf16 share: everything but the format.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/compress/compressor.h"
#include "accordion/kernels/halves.h"

namespace accordion {

struct SixteenBitFormat {
  std::string_view name;
  Element element;
  decltype(&kernels::to_halves) narrow;
  decltype(&kernels::from_halves) widen;
};

// Each rank sends its share a / world, so that the sum over ranks is the mean and stays in range. Magnitudes
// beyond the format's largest are sent as that, and counted as saturated.
std::unique_ptr<Compressor> make_sixteen_bit(const SixteenBitFormat& format, bool feedback,
                                             const Shape& shape);

}  // namespace accordion
