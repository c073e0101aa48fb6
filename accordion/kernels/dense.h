// Loops over whole gradients, at the speed of memory. `reference` holds the plain loops they must match.
#pragma once

#include <span>

namespace accordion::kernels {

// y += x
void add(std::span<const float> x, std::span<float> y) noexcept;

// x *= factor
void scale(std::span<float> x, float factor) noexcept;

// Squares are summed in double precision: an epoch's sum of gradients spans many magnitudes.
double sum_of_squares(std::span<const float> x) noexcept;

namespace reference {
void add(std::span<const float> x, std::span<float> y) noexcept;
void scale(std::span<float> x, float factor) noexcept;
double sum_of_squares(std::span<const float> x) noexcept;
}  // namespace reference

}  // namespace accordion::kernels
