// PowerSGD: send the factors of a low-rank approximation.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct PowerSgdOptions {
  static constexpr std::string_view kName = "powersgd";
  static constexpr std::uint8_t kFrameId = 11;
  int approx_rank = 4;
  bool warm_start = true;
  void fields(auto&& field) {
    field("approx-rank", approx_rank, "Rank of the approximation.", at_least(1).up_to(1024));
    field("warm-start", warm_start, "Start each step from the last one's factor rather than from noise.");
  }
  // Its trials take enough steps for the factors to settle (L-GreCo's number).
  CodecTraits traits() const {
    return {.spoken = "PowerSGD",
            .worth = Worth::kIfMuchShorter,
            .dial = Dial{"approx-rank", 16, 1},
            .approx_rank = approx_rank,
            .trial_steps = 5};
  }
};

std::unique_ptr<Compressor> make(const PowerSgdOptions& options, const Shape& shape);

// Both rounds together.
std::size_t payload_bytes(const PowerSgdOptions& options, const Shape& shape, int world);

}  // namespace accordion
