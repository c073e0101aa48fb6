// The largest eigenvalue of a symmetric matrix of which only products with vectors are known.
#pragma once

#include <functional>
#include <span>

namespace accordion {

// Writes the matrix times `v` into `product`.
using Multiply = std::function<void(std::span<const float> v, std::span<float> product)>;

struct PowerIterationOptions {
  int iterations = 50;      // At most, and as many again if the matrix has to be shifted.
  double tolerance = 1e-3;  // Stop when the estimate moves by no more than this fraction of itself.
};

struct EigenvalueEstimate {
  double value = 0;    // Not a number if a product was not finite.
  int iterations = 0;  // Products taken, one each.
  bool converged = false;
};

// The largest eigenvalue in the algebraic sense, 3 of {-5, 1, 3}, although power iteration by itself finds
// the one of largest magnitude. It can be negative only if all are.
//
// Starts from `v`, which needs no particular length but must not be zero, and leaves the eigenvector there,
// of length one: a good start for a matrix that has changed little.
//
// Ranks that multiply together stay together: with the same `v` and the same products on every rank, they
// stop after the same iteration.
EigenvalueEstimate top_eigenvalue(const Multiply& multiply, std::span<float> v,
                                  const PowerIterationOptions& options = {});

}  // namespace accordion
