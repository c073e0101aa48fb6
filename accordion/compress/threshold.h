// Hard threshold: send every entry whose magnitude reaches lambda.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"

namespace accordion {

struct ThresholdOptions {
  static constexpr std::string_view kName = "threshold";
  double lambda = 0.005;
  void fields(auto&& field) { field("lambda", lambda, "Smallest magnitude sent.", above(0)); }
};

std::unique_ptr<Compressor> make(const ThresholdOptions& options, const Shape& shape);

// At most this: how many entries reach lambda varies.
std::size_t payload_bytes(const ThresholdOptions& options, const Shape& shape, int world);

}  // namespace accordion
