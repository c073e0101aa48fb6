#include "accordion/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace accordion {
namespace {

TEST(ParallelFor, DoesEachPieceOnce) {
  for (const int threads : {0, 1, 2, 5})
    for (const std::size_t count : {0u, 1u, 2u, 37u}) {
      std::vector<std::atomic<int>> done(count);
      parallel_for(count, threads, [&](std::size_t i) { ++done[i]; });
      for (const auto& times : done) EXPECT_EQ(times, 1);
    }
}

TEST(ParallelFor, LetsAnExceptionOutAfterTheRestIsDone) {
  for (const int threads : {2, 4}) {
    std::atomic<int> done = 0;
    const auto work = [&](std::size_t i) {
      if (i == 3) throw std::runtime_error("three");
      ++done;
    };
    EXPECT_THROW(parallel_for(20, threads, work), std::runtime_error);
    EXPECT_EQ(done, 19);
  }
}

}  // namespace
}  // namespace accordion
