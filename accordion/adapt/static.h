// One level for the whole run: the mildest, which is then the only one.
#pragma once

#include <memory>

#include "accordion/adapt/controller.h"

namespace accordion {

std::unique_ptr<Controller> make_static(std::size_t layers);

}  // namespace accordion
