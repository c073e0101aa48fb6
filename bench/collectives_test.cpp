#include "bench/collectives.h"

#include <gtest/gtest.h>

namespace accordion::bench {
namespace {

using Sizes = std::vector<std::size_t>;

TEST(Collectives, SizesEndWithTheLargest) {
  EXPECT_EQ(sizes_of({.from = 4, .to = 100, .factor = 5}), (Sizes{4, 20, 100}));
  EXPECT_EQ(sizes_of({.from = 4, .to = 101, .factor = 5}), (Sizes{4, 20, 100, 101}));
  EXPECT_EQ(sizes_of({.from = 4, .to = 4}), Sizes{4});
  EXPECT_EQ(sizes_of({.from = 8, .to = 4}), Sizes{});
  const Sizes usual = sizes_of({});
  EXPECT_EQ(usual.front(), 4u);
  EXPECT_EQ(usual.back(), std::size_t{256} << 20);
}

}  // namespace
}  // namespace accordion::bench
