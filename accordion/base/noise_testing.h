// Random numbers for tests.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace accordion {

inline std::vector<float> noise(std::size_t n, unsigned seed, float scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = scale * normal(generator);
  return values;
}

// As gradients are: most entries small, a few large, over several orders of magnitude.
inline std::vector<float> heavy_tailed(std::size_t n, unsigned seed, float tail = 2) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(generator) * std::exp(tail * normal(generator));
  return values;
}

}  // namespace accordion
