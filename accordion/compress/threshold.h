// Hard threshold: send every entry whose magnitude reaches lambda.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct ThresholdOptions {
  static constexpr std::string_view kName = "threshold";
  static constexpr std::uint8_t kFrameId = 13;
  double lambda = 0.005;
  void fields(auto&& field) { field("lambda", lambda, "Smallest magnitude sent.", above(0)); }
  // What is sent depends on the gradient; a message that grows past half of it falls back to dense by itself.
  CodecTraits traits() const { return {.spoken = "a hard threshold", .worth = Worth::kAlways}; }
};

std::unique_ptr<Compressor> make(const ThresholdOptions& options, const Shape& shape);

// At most this: how many entries reach lambda varies.
std::size_t payload_bytes(const ThresholdOptions& options, const Shape& shape, int world);

}  // namespace accordion
