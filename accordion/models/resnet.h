// Residual networks for small images (He et al. 2015), without the ImageNet stem.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/data/input_shape.h"
#include "accordion/models/width.h"

namespace accordion {

class Network;

// Basic blocks [2,2,2,2] of widths 64 to 512; 11,173,962 parameters on CIFAR-10.
struct ResNet18Options : WidthOption {
  static constexpr std::string_view kName = "resnet18";
  static constexpr Usual kUsual = {"cifar10", 16};
};

// Basic blocks [3,3,3] of widths 16 to 64; 0.27 M parameters: the largest that trains in minutes on two
// cores.
struct ResNet20Options : WidthOption {
  static constexpr std::string_view kName = "resnet20";
  static constexpr Usual kUsual = {"cifar10", 64};
};

std::shared_ptr<Network> make(const ResNet18Options& options, const ImageShape& input);
std::shared_ptr<Network> make(const ResNet20Options& options, const ImageShape& input);

}  // namespace accordion
