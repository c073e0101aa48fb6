// What another run decided, window by window; its last decision holds for all windows after it.
#pragma once

#include <memory>
#include <vector>

#include "accordion/adapt/controller.h"

namespace accordion {

std::unique_ptr<Controller> make_replay(std::vector<Decision> decisions);

}  // namespace accordion
