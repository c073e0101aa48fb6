#include "accordion/data/streams.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "accordion/data/files_testing.h"

namespace accordion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Text = std::vector<std::int32_t>;

struct Window {
  std::vector<std::int64_t> inputs, targets;
};

Window window(const TextStreams& text, Share streams, Share positions) {
  const std::size_t size = streams.size() * positions.size();
  Window result{std::vector<std::int64_t>(size, -1), std::vector<std::int64_t>(size, -1)};
  text.read(streams, positions, result.inputs, result.targets);
  return result;
}

Text counting(std::size_t size) {
  Text text(size);
  std::iota(text.begin(), text.end(), 1);  // 0 is what padding has
  return text;
}

TEST(TextStreams, TrainingDropsTheTail) {
  const Text text = counting(8);
  const TextStreams streams(text, 2, Tail::kDrop);
  EXPECT_EQ(streams.count(), 2u);
  EXPECT_EQ(streams.length(), 3u);
  const Window first = window(streams, {0, 2}, {0, 2});
  EXPECT_THAT(first.inputs, ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(first.targets, ElementsAre(2, 3, 5, 6));
  const Window second = window(streams, {0, 2}, {2, 3});
  EXPECT_THAT(second.inputs, ElementsAre(3, 6));
  EXPECT_THAT(second.targets, ElementsAre(4, 7));
  EXPECT_THAT(window(streams, {1, 2}, {1, 3}).inputs, ElementsAre(5, 6));
}

TEST(TextStreams, EvaluationPadsIt) {
  const Text text = counting(6);
  const TextStreams streams(text, 4, Tail::kPad);
  EXPECT_EQ(streams.length(), 2u);
  const Window all = window(streams, {0, 4}, {0, 2});
  EXPECT_THAT(all.inputs, ElementsAre(1, 2, 3, 4, 5, 0, 0, 0));
  EXPECT_THAT(all.targets, ElementsAre(2, 3, 4, 5, 6, kNoTarget, kNoTarget, kNoTarget));
}

TEST(TextStreams, AnEmptyShareIsNothing) {
  const Text text = counting(6);
  EXPECT_TRUE(window(TextStreams(text, 2, Tail::kPad), {1, 1}, {0, 2}).inputs.empty());
}

TEST(TextStreams, TooShort) {
  for (const Tail tail : {Tail::kDrop, Tail::kPad}) {
    EXPECT_EQ(message_of<UsageError>([&] { TextStreams(counting(4), 4, tail); }),
              "streams=4 of a text of 4 tokens, expected 1 to 3, a token to predict for each");
    EXPECT_NO_THROW(TextStreams(counting(4), 3, tail));
    EXPECT_THAT(message_of<UsageError>([&] { TextStreams(counting(4), 0, tail); }),
                HasSubstr("expected 1 to 3"));
    EXPECT_THAT(message_of<UsageError>([&] { TextStreams(counting(1), 1, tail); }),
                HasSubstr("a text of at least 2"));
    EXPECT_THAT(message_of<UsageError>([&] { TextStreams({}, 1, tail); }), HasSubstr("a text of at least 2"));
  }
}

TEST(TextStreams, NothingOutsideIsReadOrWritten) {
  const Text text = counting(9);
  const TextStreams streams(text, 2, Tail::kDrop);
  EXPECT_THAT(message_of<UsageError>([&] {
                window(streams, {1, 3}, {0, 1});
              }),
              HasSubstr("streams 1 to 3 of a text in streams, expected a range within 0 to 2"));
  EXPECT_THAT(message_of<UsageError>([&] {
                window(streams, {0, 2}, {3, 5});
              }),
              HasSubstr("positions 3 to 5 of a text in streams, expected a range within 0 to 4"));
  std::vector<std::int64_t> room(3), enough(4);
  EXPECT_THAT(message_of<UsageError>([&] {
                streams.read({0, 2}, {0, 2}, enough, room);
              }),
              HasSubstr("room for 4 inputs and 3 targets of a text in streams, expected 4 of each"));
}

// Over any cut into streams, windows and shares of ranks: each pair once, in order, and the text comes back.
RC_GTEST_PROP(TextStreams, WindowsHoldEachPairOnceAndInOrder, ()) {
  const auto pairs = *rc::gen::inRange<std::size_t>(1, 400);
  const auto count = *rc::gen::inRange<std::size_t>(1, std::min<std::size_t>(pairs, 40) + 1);
  const Tail tail = *rc::gen::element(Tail::kDrop, Tail::kPad);
  const Text text = counting(pairs + 1);
  const TextStreams streams(text, count, tail);
  RC_ASSERT(streams.count() == count);
  RC_ASSERT(tail == Tail::kPad || streams.length() * count <= pairs);
  RC_ASSERT(tail == Tail::kPad || streams.length() * count + count > pairs);
  RC_ASSERT(tail == Tail::kDrop || streams.length() * count >= pairs);
  RC_ASSERT(tail == Tail::kDrop || streams.length() * count < pairs + count);

  const int ranks = *rc::gen::inRange(1, 5);
  std::vector<std::vector<std::int64_t>> inputs(count), targets(count);
  for (std::size_t begin = 0; begin < streams.length();) {
    const Share positions{begin, std::min(streams.length(), begin + *rc::gen::inRange<std::size_t>(1, 60))};
    for (int rank = 0; rank < ranks; ++rank) {
      const Share own = share(0, count, rank, ranks);
      const Window part = window(streams, own, positions);
      for (std::size_t i = 0; i < part.inputs.size(); ++i) {
        inputs[own.begin + i / positions.size()].push_back(part.inputs[i]);
        targets[own.begin + i / positions.size()].push_back(part.targets[i]);
      }
    }
    begin = positions.end;
  }

  Text back = {1};
  for (std::size_t stream = 0; stream < count; ++stream) {
    RC_ASSERT(inputs[stream].size() == streams.length());
    for (std::size_t i = 0; i < streams.length(); ++i) {
      const bool padded = back.size() == text.size();
      RC_ASSERT(inputs[stream][i] == (padded ? 0 : back.back()));
      RC_ASSERT((targets[stream][i] == kNoTarget) == padded);
      if (!padded) back.push_back(static_cast<std::int32_t>(targets[stream][i]));
    }
  }
  RC_ASSERT(std::equal(back.begin(), back.end(), text.begin()));
  RC_ASSERT(back.size() == (tail == Tail::kPad ? text.size() : streams.length() * count + 1));
}

}  // namespace
}  // namespace accordion
