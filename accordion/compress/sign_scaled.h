// Signs times their mean magnitude, with error feedback.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct SignScaledOptions {
  static constexpr std::string_view kName = "sign-scaled";
  static constexpr std::uint8_t kFrameId = 8;
  bool chunked = false;
  void fields(auto&& field) {
    field("chunked", chunked, "Average in chunks, one a rank: flat in the number of ranks.");
  }
  CodecTraits traits() const { return {.spoken = "scaled signs"}; }
};

std::unique_ptr<Compressor> make(const SignScaledOptions& options, const Shape& shape);

std::size_t payload_bytes(const SignScaledOptions& options, const Shape& shape, int world);

}  // namespace accordion
