#include <algorithm>

#include "accordion/kernels/lowrank.h"

namespace accordion::kernels::reference {

void project(LowRank size, std::span<const float> gradient, std::span<const float> residual,
             std::span<float> a, std::span<const float> q, std::span<float> p) noexcept {
  for (std::size_t i = 0; i < residual.size(); ++i) a[i] = gradient[i] + residual[i];
  const std::span<const float> in = residual.empty() ? gradient : a;
  for (std::size_t j = 0; j < size.rank; ++j)
    for (std::size_t row = 0; row < size.rows; ++row) {
      double sum = 0;
      for (std::size_t c = 0; c < size.columns; ++c)
        sum += static_cast<double>(in[row * size.columns + c]) * q[j * size.columns + c];
      p[j * size.rows + row] = static_cast<float>(sum);
    }
}

void coefficients(LowRank size, std::span<const float> a, std::span<const float> p,
                  std::span<float> q) noexcept {
  for (std::size_t j = 0; j < size.rank; ++j)
    for (std::size_t c = 0; c < size.columns; ++c) {
      double sum = 0;
      for (std::size_t row = 0; row < size.rows; ++row)
        sum += static_cast<double>(a[row * size.columns + c]) * p[j * size.rows + row];
      q[j * size.columns + c] = static_cast<float>(sum);
    }
}

namespace {

void update(LowRank size, float sign, std::span<const float> p, std::span<const float> q,
            std::span<float> a) {
  for (std::size_t row = 0; row < size.rows; ++row)
    for (std::size_t c = 0; c < size.columns; ++c)
      for (std::size_t j = 0; j < size.rank; ++j)
        a[row * size.columns + c] += sign * p[j * size.rows + row] * q[j * size.columns + c];
}

}  // namespace

void expand(LowRank size, std::span<const float> p, std::span<const float> q, std::span<float> a) noexcept {
  std::fill(a.begin(), a.end(), 0.0f);
  update(size, 1, p, q, a);
}

void expand_add(LowRank size, std::span<const float> p, std::span<const float> q,
                std::span<float> a) noexcept {
  update(size, 1, p, q, a);
}

void take_out(LowRank size, std::span<const float> p, std::span<float> q, std::span<float> a) noexcept {
  reference::coefficients(size, a, p, q);
  update(size, -1, p, q, a);
}

}  // namespace accordion::kernels::reference
