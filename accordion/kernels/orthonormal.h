// Orthonormal bases. Plain loops on purpose: every rank must get the same bits, whatever its instruction set.
#pragma once

#include <cstddef>
#include <span>

namespace accordion::kernels {

// Euclidean length, summed in double precision in a fixed order.
double norm(std::span<const float> x) noexcept;

// Scales x to length one; `length` is norm(x).
void normalise(std::span<float> x, double length) noexcept;

// Makes the columns of p (each `rows` long, one after the other) orthonormal by modified Gram-Schmidt. A
// column that depends on earlier ones, but for what rounding in single precision leaves, becomes zero rather
// than amplified rounding. A matrix with a value that is not finite becomes zero, and the result is false.
bool orthonormalise(std::span<float> p, std::size_t rows) noexcept;

}  // namespace accordion::kernels
