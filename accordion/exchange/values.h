// Gradients as they lie in host memory, in whatever type they come. Those of 16 bits are computed with in single
// precision.
#pragma once

#include <cstddef>
#include <span>
#include <variant>

#include "accordion/base/half.h"
#include "accordion/kernels/halves.h"

namespace accordion {

using Values = std::variant<std::span<float>, std::span<double>, std::span<Half>, std::span<Bfloat16>>;

std::size_t count_of(const Values& values);
bool has_sixteen_bits(const Values& values);

double sum_of_squares(const Values& values);
void scale(const Values& values, double factor);
void fill(const Values& values, double value);

// Of 16-bit values. Narrowing divides first. What is beyond the format's range becomes its largest, even if it is not
// finite: ask what narrow() says.
void widen(const Values& values, std::span<float> floats);
kernels::Narrowed narrow(std::span<const float> floats, float divisor, const Values& values);

}  // namespace accordion
