// The squeeze-and-excitation network (Hu et al. 2018) of the CIFAR-100 experiments.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/data/input_shape.h"
#include "accordion/models/width.h"

namespace accordion {

class Network;

// Post-activation blocks [2,2,2,2] of widths 64, 128, 256 and 516; 11,436,256 parameters on CIFAR-100,
// 11,389,726 with 10 classes.
struct SeResNet18Options : WidthOption {
  static constexpr std::string_view kName = "seresnet18";
  static constexpr Usual kUsual = {"cifar100", 16};
};

std::shared_ptr<Network> make(const SeResNet18Options& options, const ImageShape& input);

}  // namespace accordion
