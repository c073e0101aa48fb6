#include "accordion/train/feed.h"

#include <gtest/gtest.h>

#include <map>

namespace accordion {
namespace {

std::vector<std::int64_t> values(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
}

TextSet counting(std::size_t tokens) {
  TextSet text{std::vector<std::string>(tokens, "word"), {}, {}};
  for (std::size_t i = 0; i < tokens; ++i) text.train.push_back(static_cast<std::int32_t>(i));
  return text;
}

// Every rank reads on where it stopped, whatever windows and steps it is cut into.
TEST(Feed, StreamsOfTextAreReadFromBeginningToEnd) {
  constexpr std::size_t kTokens = 1000;
  const TextSet text = counting(kTokens);
  for (const int ranks : {1, 3})
    for (const int accumulate : {1, 2}) {
      TrainOptions options;
      options.batch = 4;
      options.bptt = 7;
      const std::size_t length = (kTokens - 1) / static_cast<std::size_t>(4 * ranks);
      for (int rank = 0; rank < ranks; ++rank) {
        const auto feed = feed_of(text, options, rank, ranks);
        for (int epoch = 0; epoch < 2; ++epoch) {
          std::vector<std::vector<std::int64_t>> streams(4);
          std::int64_t samples = 0;
          for (const Step& step : feed->queue(epoch, accumulate)) {
            samples += step.local_samples;
            EXPECT_EQ(step.global_samples, step.local_samples * ranks);
            for (int i = 0; i < step.micro_batches; ++i) {
              const Example example = feed->next();
              EXPECT_EQ(values(example.targets), values(example.input.flatten() + 1));
              ASSERT_EQ(example.input.size(0), 4);
              for (std::size_t s = 0; s < 4; ++s)
                for (const std::int64_t token : values(example.input[static_cast<std::int64_t>(s)]))
                  streams[s].push_back(token);
            }
          }
          EXPECT_EQ(samples, static_cast<std::int64_t>(4 * length));
          for (std::size_t s = 0; s < 4; ++s) {
            ASSERT_EQ(streams[s].size(), length);
            for (std::size_t i = 0; i < length; ++i)
              ASSERT_EQ(streams[s][i],
                        static_cast<std::int64_t>((static_cast<std::size_t>(rank) * 4 + s) * length + i));
          }
        }
      }
    }
}

TEST(Feed, TextIsTheFirstTokensOfIt) {
  TrainOptions options;
  options.samples = 101;
  options.batch = 10;
  const TextSet text = counting(500);
  const auto feed = feed_of(text, options, 0, 1);
  EXPECT_EQ(feed->queue(0, 1).size(), 1u);
  EXPECT_EQ(feed->next().targets.max().item<std::int64_t>(), 100);
}

TableSet rows(std::size_t count) {
  TableSet set;
  set.train = {2, {1000, 3}, {}, {}, {}};
  for (std::size_t i = 0; i < count; ++i) {
    set.train.values.insert(set.train.values.end(), {static_cast<float>(i) / 2, 0.25f});
    set.train.category.insert(set.train.category.end(),
                              {static_cast<std::int32_t>(i), static_cast<std::int32_t>(i % 3)});
    set.train.labels.push_back(static_cast<std::uint8_t>(i % 2));
  }
  return set;
}

TEST(Feed, RanksTogetherReadEveryRowOnceAndInAnotherOrderEachEpoch) {
  const TableSet set = rows(103);
  TrainOptions options;
  options.batch = 5;
  std::vector<std::int64_t> first;
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::map<std::int64_t, int> taken;
    std::vector<std::int64_t> order;
    for (int rank = 0; rank < 3; ++rank) {
      const auto feed = feed_of(set, options, rank, 3);
      for (const Step& step : feed->queue(epoch, 2))
        for (int i = 0; i < step.micro_batches; ++i) {
          const Example example = feed->next();
          if (step.local_samples == 0) continue;
          for (std::int64_t r = 0; r < example.targets.size(0); ++r) {
            const auto row = example.input[r][2].item<std::int64_t>();
            ++taken[row];
            order.push_back(row);
            EXPECT_EQ(example.input[r][0].item<float>(), static_cast<float>(row) / 2);
            EXPECT_EQ(example.input[r][3].item<std::int64_t>(), row % 3);
            EXPECT_EQ(example.targets[r].item<std::int64_t>(), row % 2);
          }
        }
    }
    EXPECT_EQ(taken.size(), 103u);
    for (const auto& [row, times] : taken) EXPECT_EQ(times, 1) << row;
    if (epoch == 0) first = order;
    EXPECT_EQ(order == first, epoch == 0);
  }
}

// The end of one epoch must not be taken for a batch of the next.
TEST(Feed, ImagesOfOneEpochFollowThoseOfAnother) {
  ImageSet set{{1, 2, 2, 10, std::vector<std::uint8_t>(4 * 9), {}}, {}, {0.0f}, {1.0f}};
  for (std::uint8_t i = 0; i < 9; ++i) set.train.labels.push_back(i);
  TrainOptions options;
  options.batch = 2;
  const auto feed = feed_of(set, options, 0, 1);
  std::vector<Step> steps = feed->queue(0, 1);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> taken(9, 0);
    for (const Step& step : steps) {
      const Example example = feed->next();
      EXPECT_EQ(example.input.size(0), step.local_samples);
      for (const std::int64_t label : values(example.targets)) ++taken[static_cast<std::size_t>(label)];
    }
    EXPECT_EQ(taken, std::vector<int>(9, 1));
    steps = feed->queue(epoch + 1, 1);
  }
}

}  // namespace
}  // namespace accordion
