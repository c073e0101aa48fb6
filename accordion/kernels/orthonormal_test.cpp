#include "accordion/kernels/orthonormal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace accordion::kernels {
namespace {

std::vector<float> noise(std::size_t n, double scale = 1) {
  std::mt19937 generator(5);
  std::normal_distribution<double> normal;
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(normal(generator) * scale);
  return values;
}

double product(const std::vector<float>& p, std::size_t rows, std::size_t i, std::size_t j) {
  double sum = 0;
  for (std::size_t k = 0; k < rows; ++k) sum += static_cast<double>(p[i * rows + k]) * p[j * rows + k];
  return sum;
}

void expect_orthonormal(const std::vector<float>& p, std::size_t rows) {
  for (std::size_t i = 0; i < p.size() / rows; ++i)
    for (std::size_t j = 0; j <= i; ++j) EXPECT_NEAR(product(p, rows, i, j), i == j, 2e-6) << i << ", " << j;
}

TEST(Orthonormal, AtEveryScale) {
  for (double scale : {1.0, 1e-40, 1e-20, 1e20, 1e37})
    for (std::size_t columns : {1, 2, 4, 5, 16}) {
      std::vector<float> p = noise(16 * columns, scale);
      EXPECT_TRUE(orthonormalise(p, 16));
      expect_orthonormal(p, 16);
    }
}

// The second column is what the first leaves of nearly the same vector: without a second pass it is not
// orthogonal.
TEST(Orthonormal, NearlyDependentColumns) {
  std::vector<float> p = noise(10);
  for (std::size_t copy = 0; copy < 2; ++copy)
    for (std::size_t i = 0; i < 10; ++i)
      p.push_back(p[i] * (1 + 1e-4f * static_cast<float>(i * (copy + 1) % 3)));
  EXPECT_TRUE(orthonormalise(p, 10));
  EXPECT_NEAR(product(p, 10, 0, 1), 0, 1e-6);
  EXPECT_NEAR(product(p, 10, 1, 1), 1, 1e-6);
  EXPECT_NEAR(product(p, 10, 0, 2), 0, 1e-6);
}

TEST(Orthonormal, DependentColumnsBecomeZero) {
  std::vector<float> p = {1, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0};
  EXPECT_TRUE(orthonormalise(p, 3));
  EXPECT_EQ(p, (std::vector<float>{1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
  p.assign(12, 0);
  EXPECT_TRUE(orthonormalise(p, 3));
  EXPECT_EQ(p, std::vector<float>(12));
}

// Multiples of one column, rounded: what is left of them is noise.
TEST(Orthonormal, RoundedMultiplesBecomeZero) {
  for (std::size_t rows : {3, 16, 1000}) {
    const std::vector<float> first = noise(rows);
    std::vector<float> p = first;
    for (double factor : {0.3, -7.0, 1e-3})
      for (float value : first) p.push_back(static_cast<float>(value * factor));
    EXPECT_TRUE(orthonormalise(p, rows));
    EXPECT_NEAR(product(p, rows, 0, 0), 1, 1e-6);
    EXPECT_EQ(std::vector<float>(p.begin() + static_cast<std::ptrdiff_t>(rows), p.end()),
              std::vector<float>(3 * rows))
        << rows;
  }
}

TEST(Orthonormal, NotFiniteBecomesZero) {
  for (float bad : {INFINITY, NAN}) {
    std::vector<float> p = noise(12);
    p[7] = bad;
    EXPECT_FALSE(orthonormalise(p, 4));
    EXPECT_EQ(p, std::vector<float>(12));
  }
}

TEST(Orthonormal, EmptyMatrix) {
  std::vector<float> p;
  EXPECT_TRUE(orthonormalise(p, 0));
  EXPECT_TRUE(orthonormalise(p, 3));
}

}  // namespace
}  // namespace accordion::kernels
