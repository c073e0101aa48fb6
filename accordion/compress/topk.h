// TopK: send the entries of largest magnitude.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct TopKOptions {
  static constexpr std::string_view kName = "topk";
  static constexpr std::uint8_t kFrameId = 3;
  double keep = 0.01;
  bool published = false;
  void fields(auto&& field) {
    field("keep", keep, "Fraction of entries sent.", above(0).up_to(1));
    field("published", published,
          "As Accordion's published code: added up instead of averaged, and what is not sent is lost.");
  }
  CodecTraits traits() const {
    return {.spoken = "TopK", .dial = Dial{"keep", 0.256, 0.001}, .keeps_largest = keep};
  }
};

std::unique_ptr<Compressor> make(const TopKOptions& options, const Shape& shape);

std::size_t payload_bytes(const TopKOptions& options, const Shape& shape, int world);

}  // namespace accordion
