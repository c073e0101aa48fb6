// The dense gradient in IEEE half precision.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct Fp16Options {
  static constexpr std::string_view kName = "fp16";
  static constexpr std::uint8_t kFrameId = 1;
  bool feedback = false;
  void fields(auto&& field) { field("feedback", feedback, "Keep what rounding drops and send it later."); }
  CodecTraits traits() const { return {.spoken = "16 bits (fp16)"}; }
};

std::unique_ptr<Compressor> make(const Fp16Options& options, const Shape& shape);

std::size_t payload_bytes(const Fp16Options& options, const Shape& shape, int world);

}  // namespace accordion
