// The magnitude that just so many entries reach.
#pragma once

#include <cstddef>

#include "accordion/kernels/select.h"

namespace accordion::kernels {

// The k-th largest magnitude, 1 <= k <= n, and how many entries lie above it and on it.
struct Kth {
  Magnitude value = 0;
  std::size_t above = 0, equal = 0;
};
Kth kth_largest(Sum a, std::size_t k) noexcept;

}  // namespace accordion::kernels
