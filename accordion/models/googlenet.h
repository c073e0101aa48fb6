// GoogLeNet (Szegedy et al. 2015) for small images.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/data/input_shape.h"
#include "accordion/models/width.h"

namespace accordion {

class Network;

// Nine inceptions; 6,166,250 parameters on CIFAR-10.
struct GoogLeNetOptions : WidthOption {
  static constexpr std::string_view kName = "googlenet";
  static constexpr Usual kUsual = {"cifar10", 8};
};

std::shared_ptr<Network> make(const GoogLeNetOptions& options, const ImageShape& input);

}  // namespace accordion
