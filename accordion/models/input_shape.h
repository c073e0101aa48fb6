// What a data set asks of a model.
#pragma once

namespace accordion {

struct InputShape {
  int channels, height, width, classes;
};

}  // namespace accordion
