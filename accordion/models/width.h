// The option that every model has: how wide it is, as a factor on its published number of channels.
#pragma once

#include <cmath>

#include "accordion/base/options.h"
#include "accordion/models/usual.h"

namespace accordion {

struct WidthOption {
  double width = 1;
  void fields(auto&& field) { field("width", width, "Factor on the number of channels.", above(0).up_to(8)); }

  std::vector<int> scaled(std::initializer_list<int> channels) const {
    std::vector<int> result;
    for (const int each : channels) result.push_back(scaled(each));
    return result;
  }

  // At least one channel, however narrow.
  int scaled(int channels) const { return std::max(1, static_cast<int>(std::lround(channels * width))); }
};

}  // namespace accordion
