#include <cmath>

#include "accordion/kernels/marked.h"

namespace accordion::kernels::reference {

bool take_marked(std::span<const std::uint64_t> marks, std::span<const float> gradient,
                 std::span<const float> residual, std::span<float> next, float* values) noexcept {
  bool finite = true;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const bool marked = marks[i / 64] >> (i % 64) & 1;
    const float a = residual.empty() ? gradient[i] : gradient[i] + residual[i];
    finite = finite && std::isfinite(a);
    if (marked) *values++ = a;
    if (!next.empty()) next[i] = marked ? 0.0f : a;
  }
  return finite;
}

void put_marked(std::span<const std::uint64_t> marks, const float* values, double factor,
                std::span<float> out) noexcept {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = marks[i / 64] >> (i % 64) & 1 ? static_cast<float>(*values++ * factor) : 0.0f;
}

}  // namespace accordion::kernels::reference
