// MSTopK: about the largest entries, by a search for the threshold that sends k of them.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"

namespace accordion {

struct MsTopKOptions {
  static constexpr std::string_view kName = "mstopk";
  double keep = 0.01;
  int samples = 25;
  void fields(auto&& field) {
    field("keep", keep, "Fraction of entries sent.", above(0).up_to(1));
    field("samples", samples, "Thresholds tried.", at_least(1).up_to(1000));
  }
};

std::unique_ptr<Compressor> make(const MsTopKOptions& options, const Shape& shape);

std::size_t payload_bytes(const MsTopKOptions& options, const Shape& shape, int world);

}  // namespace accordion
