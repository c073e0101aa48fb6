// Every kernel, on every instruction set this machine has, gives the bits of its plain loop.
#include "accordion/kernels/levels.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "accordion/kernels/targets_testing.h"

namespace accordion::kernels {
namespace {

class LevelsKernels : public EachTarget {
 protected:
  Levels draw(int bits) {
    Levels levels;
    const int steps = (1 << (bits - 1)) - 1;
    for (std::int8_t& level : levels)
      level = static_cast<std::int8_t>(static_cast<int>(generator() % (2 * steps + 1)) - steps);
    return levels;
  }

  std::mt19937 generator{1};
};

TEST_P(LevelsKernels, PackLikeTheReferenceAndUnpack) {
  for (int bits : {2, 4, 8})
    for (std::size_t n : {0, 1, 3, 7, 8, 31, 33, 100, 511, 512}) {
      Levels levels = draw(bits);
      std::fill(levels.begin() + static_cast<std::ptrdiff_t>(n), levels.end(), std::int8_t{0});
      std::vector<std::byte> packed((n * bits + 7) / 8), expected(packed.size());
      pack(levels, bits, packed);
      reference::pack(levels, bits, expected);
      EXPECT_EQ(packed, expected) << bits << " " << n;
      Levels back = {}, slow = {};
      unpack(packed, bits, back);
      reference::unpack(packed, bits, slow);
      EXPECT_TRUE(std::equal(levels.begin(), levels.begin() + static_cast<std::ptrdiff_t>(n), back.begin()));
      EXPECT_TRUE(std::equal(levels.begin(), levels.begin() + static_cast<std::ptrdiff_t>(n), slow.begin()));
    }
}

// Units that do not fit a few bits, so that a fused multiplication and addition would show.
TEST_P(LevelsKernels, AddLikeTheReference) {
  std::normal_distribution<float> normal;
  for (std::size_t count : {0, 1, 2, 5})
    for (std::size_t n : {0, 1, 3, 7, 15, 17, 31, 33, 65, 100, 512}) {
      std::vector<Levels> levels(count);
      std::vector<Scaled> ranks;
      for (Levels& of_rank : levels) {
        of_rank = draw(8);
        ranks.push_back({of_rank.data(), normal(generator)});
      }
      std::vector<float> fast(n, 7.0f), slow(n, 7.0f);
      sum_levels(ranks, fast);
      reference::sum_levels(ranks, slow);
      EXPECT_EQ(fast, slow) << count << " " << n;
      for (const Scaled& rank : ranks) {
        add_levels(rank, fast);
        reference::add_levels(rank, slow);
      }
      EXPECT_EQ(fast, slow) << count << " " << n;
    }
}

TEST(Levels, AProductIsRoundedBeforeItIsAdded) {
  Levels three;
  three.fill(3);
  const float third = 1.0f / 3;  // Three times it rounds to 1; unrounded it is a little more.
  std::vector<float> x(20, -1.0f);
  add_levels({three.data(), third}, x);
  EXPECT_EQ(x, std::vector<float>(20, 0.0f));
}

ACCORDION_ON_EACH_TARGET(LevelsKernels);

}  // namespace
}  // namespace accordion::kernels
