// What a model is usually given.
#pragma once

#include <string_view>

namespace accordion {

struct Usual {
  std::string_view data;  // The data set it is meant for.
  int batch;              // Images, streams of text or rows: few enough for a step of seconds on two cores.
};

}  // namespace accordion
