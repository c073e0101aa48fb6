// PowerSGD: send the factors of a low-rank approximation.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"

namespace accordion {

struct PowerSgdOptions {
  static constexpr std::string_view kName = "powersgd";
  int approx_rank = 4;
  bool warm_start = true;
  void fields(auto&& field) {
    field("approx-rank", approx_rank, "Rank of the approximation.", at_least(1).up_to(1024));
    field("warm-start", warm_start, "Start each step from the last one's factor rather than from noise.");
  }
};

std::unique_ptr<Compressor> make(const PowerSgdOptions& options, const Shape& shape);

// Both rounds together.
std::size_t payload_bytes(const PowerSgdOptions& options, const Shape& shape, int world);

}  // namespace accordion
