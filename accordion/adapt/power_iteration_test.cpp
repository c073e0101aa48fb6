#include "accordion/adapt/power_iteration.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/base/random.h"

namespace accordion {
namespace {

std::vector<float> gaussian(std::size_t n, std::uint64_t seed) {
  std::vector<float> v(n);
  RandomStream(RandomKey{seed}).normal(v);
  return v;
}

// A matrix with these eigenvalues whose eigenvectors are no axes: a reflection on either side of a diagonal.
Multiply with_spectrum(const std::vector<double>& eigenvalues) {
  std::vector<float> mirror = gaussian(eigenvalues.size(), 99);
  double squares = 0;
  for (const float x : mirror) squares += static_cast<double>(x) * x;
  return [=](std::span<const float> v, std::span<float> product) {
    std::vector<double> x(v.begin(), v.end());
    const auto reflect = [&] {
      double along = 0;
      for (std::size_t i = 0; i < x.size(); ++i) along += mirror[i] * x[i];
      for (std::size_t i = 0; i < x.size(); ++i) x[i] -= 2 * along / squares * mirror[i];
    };
    reflect();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= eigenvalues[i];
    reflect();
    for (std::size_t i = 0; i < x.size(); ++i) product[i] = static_cast<float>(x[i]);
  };
}

EigenvalueEstimate top_of(const std::vector<double>& eigenvalues, std::uint64_t seed = 1) {
  std::vector<float> v = gaussian(eigenvalues.size(), seed);
  int products = 0;
  const Multiply multiply = with_spectrum(eigenvalues);
  const EigenvalueEstimate result = top_eigenvalue(
      [&](std::span<const float> from, std::span<float> product) {
        ++products;
        multiply(from, product);
      },
      v);
  EXPECT_EQ(result.iterations, products);
  return result;
}

TEST(PowerIteration, FindsTheLargestEigenvalue) {
  const EigenvalueEstimate result = top_of({0.1, 7, 2, 1, 0, -0.5});
  EXPECT_NEAR(result.value, 7, 0.01);
  EXPECT_TRUE(result.converged);
  EXPECT_LT(result.iterations, 10);
}

TEST(PowerIteration, LooksPastNegativeOnesOfLargerMagnitude) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const auto& spectrum :
         std::vector<std::vector<double>>{{3, -5, 1}, {-10, 3, 1, -1}, {-3, 3, 1, 0}, {3, -3.01, -3, 0.5}}) {
      const EigenvalueEstimate result = top_of(spectrum, seed);
      EXPECT_NEAR(result.value, 3, 0.05) << spectrum[0] << " " << spectrum[1] << " seed " << seed;
      EXPECT_TRUE(result.converged);
    }
    EXPECT_NEAR(top_of({-2, -5, -4}, seed).value, -2, 0.02) << "negative if all are";
    EXPECT_NEAR(top_of({-5, 0, -1}, seed).value, 0, 0.02);
  }
}

TEST(PowerIteration, TakesExtremeMatrices) {
  for (const std::size_t n : {1, 3}) {
    const EigenvalueEstimate zero = top_of(std::vector<double>(n, 0));
    EXPECT_EQ(zero.value, 0);
    EXPECT_TRUE(zero.converged);
    EXPECT_EQ(zero.iterations, 1);
    for (const double same : {4.0, -4.0, 1e-12, 1e12}) {
      const EigenvalueEstimate result = top_of(std::vector<double>(n, same));
      EXPECT_NEAR(result.value, same, 1e-5 * std::abs(same)) << n;
      EXPECT_TRUE(result.converged);
    }
  }
}

TEST(PowerIteration, LeavesTheEigenvectorToStartFrom) {
  const std::vector<double> spectrum = {9, 8, 1, -10, 3};
  std::vector<float> v = gaussian(5, 1);
  const EigenvalueEstimate first = top_eigenvalue(with_spectrum(spectrum), v);
  double squares = 0;
  for (const float x : v) squares += static_cast<double>(x) * x;
  EXPECT_NEAR(squares, 1, 1e-5);

  std::vector<double> later = spectrum;
  for (double& eigenvalue : later) eigenvalue *= 1.1;
  const EigenvalueEstimate second = top_eigenvalue(with_spectrum(later), v);
  EXPECT_LT(second.iterations, first.iterations);
  EXPECT_NEAR(second.value, 9.9, 0.1);
}

TEST(PowerIteration, StopsWhereItIsTold) {
  std::vector<float> v = gaussian(3, 1);
  const EigenvalueEstimate cut = top_eigenvalue(with_spectrum({3, 2.5, 1}), v, {.iterations = 2});
  EXPECT_LE(cut.iterations, 4) << "twice, if it shifts";
  EXPECT_FALSE(cut.converged);

  // A large shift makes all eigenvalues look alike.
  const EigenvalueEstimate slow = top_of({-100, 3, 1});
  EXPECT_FALSE(slow.converged);
  EXPECT_LE(slow.iterations, 100);
  EXPECT_GT(slow.value, 0);
  EXPECT_LT(slow.value, 3) << "never too large";
}

TEST(PowerIteration, WhatIsNotFiniteIsNoEstimate) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> v = gaussian(3, 1);
    int products = 0;
    const EigenvalueEstimate result = top_eigenvalue(
        [&](auto, std::span<float> product) {
          std::fill(product.begin(), product.end(), products++ == 0 ? 1.0f : bad);
        },
        v);
    EXPECT_TRUE(std::isnan(result.value));
    EXPECT_FALSE(result.converged);
    EXPECT_EQ(result.iterations, 2);
    EXPECT_NEAR(top_eigenvalue(with_spectrum({3, 1, 0}), v).value, 3, 0.01) << "from the last sound vector";
  }
}

TEST(PowerIteration, RefusesAStartWithoutDirection) {
  std::vector<float> zero(3), wild(3, std::nanf(""));
  EXPECT_THROW(top_eigenvalue(with_spectrum({1, 2, 3}), zero), UsageError);
  EXPECT_THROW(top_eigenvalue(with_spectrum({1, 2, 3}), wild), UsageError);
  std::vector<float> v = gaussian(3, 1);
  EXPECT_THROW(top_eigenvalue(with_spectrum({1, 2, 3}), v, {.iterations = 0}), UsageError);
  EXPECT_THROW(top_eigenvalue(with_spectrum({1, 2, 3}), v, {.tolerance = 0}), UsageError);
}

// Where the second eigenvalue is well below the first, whatever is at the other end, and from a start in
// which no eigenvector is all but missing: one that is may not have grown yet when the others have settled.
RC_GTEST_PROP(PowerIterationProperties, FindsTheLargestOfAnySpectrumWithAGap, ()) {
  const double top = *rc::gen::inRange(1, 1000) / 100.0;
  const auto fractions = *rc::gen::container<std::vector<int>>(*rc::gen::inRange<std::size_t>(1, 30),
                                                               rc::gen::inRange(-300, 50));
  std::vector<double> spectrum = {top};
  for (const int fraction : fractions) spectrum.push_back(top * fraction / 100);
  std::vector<float> v(spectrum.size(), 1.0f);
  const EigenvalueEstimate result = top_eigenvalue(
      [&](std::span<const float> from, std::span<float> product) {
        for (std::size_t i = 0; i < v.size(); ++i) product[i] = static_cast<float>(spectrum[i] * from[i]);
      },
      v);
  RC_ASSERT(std::abs(result.value - top) < 0.02 * top);
}

}  // namespace
}  // namespace accordion
