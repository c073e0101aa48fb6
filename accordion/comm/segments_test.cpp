#include "accordion/comm/segments.h"

#include <gtest/gtest.h>

#include <limits>

namespace accordion {
namespace {

constexpr double kSlow = 12.5e6, kUsual = 125e6, kFast = 1e9;

TEST(Segments, AreNotTooShort) {
  for (const double pace : {kSlow, kUsual, kFast}) {
    EXPECT_EQ(segments_of(0, pace), 1u);
    EXPECT_EQ(segments_of(2 * kLeastSegment - 1, pace), 1u);
    EXPECT_EQ(segments_of(2 * kLeastSegment, pace), 2u);
    for (std::size_t bytes = kLeastSegment; bytes < 100'000'000; bytes = bytes * 5 / 4) {
      EXPECT_GE(bytes / segments_of(bytes, pace), kLeastSegment) << bytes << " at " << pace;
      EXPECT_GE(bytes / chain_segments_of(bytes), kLeastSegment) << bytes;
    }
  }
}

TEST(Segments, TakeTwoMillisecondsOfTheLink) {
  constexpr std::size_t kBytes = 6'000'000;
  EXPECT_EQ(segments_of(kBytes, kFast), 3u);
  EXPECT_EQ(segments_of(kBytes, kUsual), 24u);
  EXPECT_EQ(segments_of(kBytes, kSlow), kBytes / kLeastSegment) << "but are not too short";
  EXPECT_EQ(segments_of(1'000'000, kFast), 2u) << "nor one alone";
}

// Ranks tell each other the pace with long sums only.
TEST(Segments, OfMessagesThatAreNotLongDoNotDependOnTheLink) {
  const std::size_t bytes = 4 * kLeastSegment - 1;
  EXPECT_FALSE(is_long(bytes));
  EXPECT_EQ(segments_of(bytes, kSlow), segments_of(bytes, kFast));
  EXPECT_TRUE(is_long(bytes + 1));
}

TEST(Segments, GoInOneRoundUnlessBlocksAreLongAndRanksFew) {
  constexpr std::size_t kLong = 6'000'000, kShort = 1'000'000;
  EXPECT_EQ(rounds_of(24, kLong, 4), 24u);
  EXPECT_EQ(rounds_of(24, kLong, 5), 1u);
  EXPECT_EQ(rounds_of(4, kShort, 4), 1u);
}

// A pace comes from other ranks.
TEST(Segments, TakeAnyPace) {
  constexpr std::size_t kBytes = 6'000'000;
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const double pace : {0.0, -1e9, nan, inf, -inf, 1e-300, 1e300}) {
    EXPECT_GE(segments_of(kBytes, pace), 2u);
    EXPECT_LE(segments_of(kBytes, pace), kBytes / kLeastSegment);
  }
}

}  // namespace
}  // namespace accordion
