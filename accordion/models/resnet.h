// Residual networks for small images (He et al. 2015), without the ImageNet stem.
#pragma once

#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace accordion {

// Basic blocks [2,2,2,2] of widths 64 to 512; 11,173,962 parameters on CIFAR-10.
std::shared_ptr<Network> make_resnet18(const InputShape& input);

// Basic blocks [3,3,3] of widths 16 to 64; 0.27 M parameters: the largest that trains in minutes on two
// cores.
std::shared_ptr<Network> make_resnet20(const InputShape& input);

}  // namespace accordion
