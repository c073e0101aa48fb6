// QSGD: stochastic rounding to a few evenly spaced levels, right on average.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct QsgdOptions {
  static constexpr std::string_view kName = "qsgd";
  static constexpr std::uint8_t kFrameId = 9;
  std::string bits = "4";
  int block = 512;
  std::string norm = "max", coding = "fixed";
  bool share_scale = false, chunked = false;
  void fields(auto&& field) {
    field("bits", bits, "Bits an entry: 2, 4, 8 bits are 1, 7, 127 levels of either sign.",
          one_of({"2", "4", "8"}));
    field("block", block, "Entries that share a scale.", at_least(1));
    field("norm", norm, "The scale: the block's largest magnitude, or its Euclidean norm.",
          one_of({"max", "l2"}));
    field("coding", coding, "Fields of fixed width, or Elias codes: shorter if most levels are 0.",
          one_of({"fixed", "elias"}));
    field("share-scale", share_scale, "Agree on scales first, and add integers instead of gathering.");
    field("chunked", chunked, "Average in chunks, one a rank: flat in the number of ranks.");
  }
  // How long Elias codes get depends on the gradient.
  CodecTraits traits() const {
    const int steps = (1 << (std::stoi(bits) - 1)) - 1;
    return {.spoken = "QSGD",
            .worth = coding == "elias" ? Worth::kAlways : Worth::kIfShorter,
            .dial = Dial{"bits", 8, 2},
            .ranks = share_scale ? RankLimit{32767 / steps, "share-scale", "their sum must fit 16 bits"}
                                 : RankLimit{}};
  }
};

std::unique_ptr<Compressor> make(const QsgdOptions& options, const Shape& shape);

// At most this with Elias codes.
std::size_t payload_bytes(const QsgdOptions& options, const Shape& shape, int world);

}  // namespace accordion
