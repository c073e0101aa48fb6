// TernGrad: every entry is -R, 0 or R, at random, and right on average.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct TernGradOptions {
  static constexpr std::string_view kName = "terngrad";
  static constexpr std::uint8_t kFrameId = 10;
  double clip = 2.5;
  bool share_scale = false, chunked = false;
  void fields(auto&& field) {
    field("clip", clip, "Standard deviations beyond which entries are cut off; 0 for none.", at_least(0));
    field("share-scale", share_scale, "Agree on one scale first, and add integers instead of gathering.");
    field("chunked", chunked, "Average in chunks, one a rank: flat in the number of ranks.");
  }
  CodecTraits traits() const {
    return {
        .spoken = "TernGrad",
        .ranks = share_scale ? RankLimit{32767, "share-scale", "their sum must fit 16 bits"} : RankLimit{}};
  }
  // The mean of a chunk is sparse: what clipping would cut off is all there is of it.
  TernGradOptions from_owner() const { return {.clip = 0}; }
};

std::unique_ptr<Compressor> make(const TernGradOptions& options, const Shape& shape);

std::size_t payload_bytes(const TernGradOptions& options, const Shape& shape, int world);

}  // namespace accordion
