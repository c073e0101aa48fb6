// The dense gradient in single precision. Has no compressor: the exchange adds it up with all else that is
// dense.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "accordion/compress/compressor.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct NoneOptions {
  static constexpr std::string_view kName = "none";
  static constexpr std::uint8_t kFrameId = 0;
  void fields(auto&&) {}
  CodecTraits traits() const { return {.spoken = "plain DDP"}; }
};

inline std::unique_ptr<Compressor> make(const NoneOptions&, const Shape&) {
  return nullptr;
}

inline std::size_t payload_bytes(const NoneOptions&, const Shape& shape, int) {
  return shape.count() * sizeof(float);
}

}  // namespace accordion
