// A LeNet-class network that trains in minutes on two cores.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/data/input_shape.h"
#include "accordion/models/width.h"

namespace accordion {

class Network;

// conv 3x3 -> 32, pool, conv 3x3 -> 64, pool, linear -> 64, linear -> classes. 220,234 parameters on 28x28
// grey images.
struct CnnOptions : WidthOption {
  static constexpr std::string_view kName = "cnn";
  static constexpr Usual kUsual = {"fashion-mnist", 128};
};

std::shared_ptr<Network> make(const CnnOptions& options, const ImageShape& input);

}  // namespace accordion
