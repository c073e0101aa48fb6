// MSTopK: about the largest entries, by a search for the threshold that sends k of them.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct MsTopKOptions {
  static constexpr std::string_view kName = "mstopk";
  static constexpr std::uint8_t kFrameId = 4;
  double keep = 0.01;
  int samples = 25;
  void fields(auto&& field) {
    field("keep", keep, "Fraction of entries sent.", above(0).up_to(1));
    field("samples", samples, "Thresholds tried.", at_least(1).up_to(1000));
  }
  CodecTraits traits() const { return {.spoken = "MSTopK", .dial = Dial{"keep", 0.256, 0.001}}; }
};

std::unique_ptr<Compressor> make(const MsTopKOptions& options, const Shape& shape);

std::size_t payload_bytes(const MsTopKOptions& options, const Shape& shape, int world);

}  // namespace accordion
