// Wide residual networks (Zagoruyko and Komodakis 2016).
#pragma once

#include <memory>
#include <string_view>

#include "accordion/data/input_shape.h"
#include "accordion/models/width.h"

namespace accordion {

class Network;

// WRN-28-10: 36,489,290 parameters on CIFAR-10. The stem keeps its 16 channels, so a width of k / 10 is
// WRN-28-k.
struct WideResNetOptions : WidthOption {
  static constexpr std::string_view kName = "wideresnet";
  static constexpr Usual kUsual = {"cifar10", 4};
};

std::shared_ptr<Network> make(const WideResNetOptions& options, const ImageShape& input);

}  // namespace accordion
