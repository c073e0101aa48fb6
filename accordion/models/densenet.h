// Densely connected networks with bottlenecks and compression, DenseNet-BC (Huang et al. 2017).
#pragma once

#include <memory>
#include <string_view>

#include "accordion/data/input_shape.h"
#include "accordion/models/width.h"

namespace accordion {

class Network;

// Growth 12, blocks of [6,12,24,16] layers; 1,000,618 parameters on CIFAR-10.
struct DenseNetOptions : WidthOption {
  static constexpr std::string_view kName = "densenet";
  static constexpr Usual kUsual = {"cifar10", 16};
};

std::shared_ptr<Network> make(const DenseNetOptions& options, const ImageShape& input);

}  // namespace accordion
