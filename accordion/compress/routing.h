// Which tensors go dense whatever the codec.
#pragma once

#include <cstddef>

namespace accordion {

// Which tensors are not worth compressing.
struct Routing {
  std::size_t min_count = 1024;  // Smaller ones go dense.
  double min_rate = 2;     // So does what a codec would have to shrink much, and shrinks less than this.
  bool published = false;  // As published: everything of two dimensions or more is compressed.
};

}  // namespace accordion
