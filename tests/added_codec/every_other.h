// A codec for a test alone: entries of even and of odd places, in turn.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct EveryOtherOptions {
  static constexpr std::string_view kName = "every-other";
  static constexpr std::uint8_t kFrameId = 200;
  int stride = 2;
  bool chunked = false;
  void fields(auto&& field) {
    field("stride", stride, "Of so many entries one is sent.", at_least(1).up_to(64));
    field("chunked", chunked, "Average in chunks, one a rank: flat in the number of ranks.");
  }
  CodecTraits traits() const { return {.worth = Worth::kAlways}; }
};

std::unique_ptr<Compressor> make(const EveryOtherOptions& options, const Shape& shape);

std::size_t payload_bytes(const EveryOtherOptions& options, const Shape& shape, int world);

}  // namespace accordion
