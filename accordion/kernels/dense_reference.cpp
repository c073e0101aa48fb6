#include "accordion/kernels/dense.h"

namespace accordion::kernels::reference {

void add(std::span<const float> x, std::span<float> y) noexcept {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] += x[i];
}

void scale(std::span<float> x, float factor) noexcept {
  for (float& value : x) value *= factor;
}

double sum_of_squares(std::span<const float> x) noexcept {
  double sum = 0;
  for (float value : x) sum += static_cast<double>(value) * value;
  return sum;
}

}  // namespace accordion::kernels::reference
