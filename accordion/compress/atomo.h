// ATOMO: send singular triplets chosen at random, so that the mean is unbiased.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct AtomoOptions {
  static constexpr std::string_view kName = "atomo";
  static constexpr std::uint8_t kFrameId = 12;
  double budget = 4;
  void fields(auto&& field) {
    field("budget", budget, "Expected number of singular triplets sent.", above(0));
  }
  CodecTraits traits() const {
    return {.spoken = "ATOMO", .worth = Worth::kAlways, .above_rank = budget, .slow = true};
  }
};

std::unique_ptr<Compressor> make(const AtomoOptions& options, const Shape& shape);

// The expected length: the number of triplets is random. round().max_bytes bounds it.
std::size_t payload_bytes(const AtomoOptions& options, const Shape& shape, int world);

}  // namespace accordion
