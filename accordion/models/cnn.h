// A LeNet-class network that trains in minutes on two cores.
#pragma once

#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace accordion {

// conv 3x3 -> 32, pool, conv 3x3 -> 64, pool, linear -> 64, linear -> classes. 220,234 parameters on 28x28
// grey images.
std::shared_ptr<Network> make_cnn(const InputShape& input);

}  // namespace accordion
