// RandomK: send entries chosen at random, the same on every rank.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct RandomKOptions {
  static constexpr std::string_view kName = "randomk";
  static constexpr std::uint8_t kFrameId = 5;
  double keep = 0.01;
  bool block = false;
  bool feedback = true;
  void fields(auto&& field) {
    field("keep", keep, "Fraction of entries sent.", above(0).up_to(1));
    field("block", block, "Send consecutive entries from a random start.");
    field("feedback", feedback,
          "Keep what is not sent for later; else scale what is sent so that the mean is unbiased.");
  }
  CodecTraits traits() const { return {.spoken = "RandomK", .dial = Dial{"keep", 0.256, 0.001}}; }
};

std::unique_ptr<Compressor> make(const RandomKOptions& options, const Shape& shape);

std::size_t payload_bytes(const RandomKOptions& options, const Shape& shape, int world);

}  // namespace accordion
