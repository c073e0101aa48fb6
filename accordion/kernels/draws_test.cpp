// The same bits on every instruction set this machine has, and bits that look random: within a chunk, between
// chunks that follow each other, and between keys that differ in a bit.
#include "accordion/kernels/draws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "accordion/kernels/targets_testing.h"

namespace accordion::kernels {
namespace {

class DrawKernels : public EachTarget {};

TEST_P(DrawKernels, DrawTheSameBits) {
  for (std::uint64_t chunk :
       {std::uint64_t{0}, std::uint64_t{7}, (std::uint64_t{1} << 29) - 1, std::uint64_t{1} << 30}) {
    Draws fast, slow;
    draw(RandomKey{0xfedcba9876543210}, chunk, fast);
    reference::draw(RandomKey{0xfedcba9876543210}, chunk, slow);
    EXPECT_EQ(fast, slow) << chunk;
  }
}

constexpr std::uint64_t kChunks = 4000;

std::vector<double> sequence(RandomKey key, std::uint64_t first) {
  std::vector<double> values;
  for (std::uint64_t chunk = first; chunk < first + kChunks; ++chunk) {
    Draws draws;
    draw(key, chunk, draws);
    for (std::uint16_t draw : draws) values.push_back((draw + 0.5) / 65536 - 0.5);
  }
  return values;
}

// In standard deviations of a correlation of independent values; 12 is the inverse of their variance.
double correlation(const std::vector<double>& x, const std::vector<double>& y, std::size_t shift) {
  double sum = 0;
  for (std::size_t i = 0; i + shift < x.size(); ++i) sum += x[i] * y[i + shift];
  return 12 * sum / std::sqrt(static_cast<double>(x.size() - shift));
}

TEST(Draws, HaveTheMeanAndNoCorrelation) {
  const std::vector<double> x = sequence(RandomKey{1}, 0);
  double sum = 0;
  for (double value : x) sum += value;
  EXPECT_LT(std::abs(sum) * std::sqrt(12.0 / static_cast<double>(x.size())), 5);
  // Neighbours, parts of a lane's word, lanes, steps and chunks.
  for (std::size_t shift : {1, 2, 3, 4, 5, 8, 16, 28, 32, 36, 64, 96, 256, 480, 512, 1024, 4096})
    EXPECT_LT(std::abs(correlation(x, x, shift)), 5) << shift;
  for (std::uint64_t other :
       {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1} << 32 | 1, ~std::uint64_t{0}})
    EXPECT_LT(std::abs(correlation(x, sequence(RandomKey{other}, 0), 0)), 5) << other;
  EXPECT_LT(std::abs(correlation(x, sequence(RandomKey{1}, std::uint64_t{1} << 29), 0)), 5);
}

// Pearson's statistic of counts that should be equal, in standard deviations from its mean.
double uneven(const std::vector<double>& counts) {
  double total = 0, statistic = 0;
  for (double count : counts) total += count;
  const double expected = total / static_cast<double>(counts.size());
  for (double count : counts) statistic += (count - expected) * (count - expected) / expected;
  const double freedom = static_cast<double>(counts.size() - 1);
  return (statistic - freedom) / std::sqrt(2 * freedom);
}

TEST(Draws, FillEveryBinAlike) {
  const std::vector<double> x = sequence(RandomKey{77}, 5);
  const auto digit = [&](std::size_t i) { return static_cast<std::size_t>((x[i] + 0.5) * 64); };
  std::vector<double> all(65536), low(64);
  for (double value : x) {
    const auto draw = static_cast<std::size_t>((value + 0.5) * 65536);
    ++all[draw];
    ++low[draw % 64];
  }
  EXPECT_LT(std::abs(uneven(all)), 5);
  EXPECT_LT(std::abs(uneven(low)), 5);
  // Pairs: neighbours, lanes, a lane's successive steps, chunks.
  for (std::size_t shift : {1, 4, 32, 64, 512}) {
    std::vector<double> pairs(64 * 64);
    for (std::size_t i = 0; i + shift < x.size(); ++i) ++pairs[64 * digit(i) + digit(i + shift)];
    EXPECT_LT(std::abs(uneven(pairs)), 5) << shift;
  }
  // A lane's three successive steps.
  std::vector<double> triples(16 * 16 * 16);
  for (std::size_t i = 0; i + 64 < x.size(); ++i)
    if (i % 512 < 512 - 64) ++triples[(digit(i) / 4 * 16 + digit(i + 32) / 4) * 16 + digit(i + 64) / 4];
  EXPECT_LT(std::abs(uneven(triples)), 5);
}

ACCORDION_ON_EACH_TARGET(DrawKernels);

}  // namespace
}  // namespace accordion::kernels
