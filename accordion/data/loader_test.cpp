#include "accordion/data/loader.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <map>
#include <numeric>

#include "accordion/data/files_testing.h"

namespace accordion {
namespace {

const std::vector<float> kMean = {0.5f}, kDeviation = {0.25f};
const Images kImages = random_images(1, 6, 5, 100, 1);
const Augmentation kAugmentation{.pad = 2, .flip = true};

std::vector<std::uint32_t> in_order(std::uint32_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST(BatchLoader, EvaluatesInOrder) {
  BatchLoader loader(kImages, kMean, kDeviation);
  loader.queue(0, in_order(100), batch_shares(100, 32, 0, 1));
  std::vector<float> images;
  std::vector<std::int64_t> labels, sizes;
  while (const std::optional<Batch> batch = loader.next()) {
    images.insert(images.end(), batch->images.begin(), batch->images.end());
    labels.insert(labels.end(), batch->labels.begin(), batch->labels.end());
    sizes.push_back(static_cast<std::int64_t>(batch->size()));
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{32, 32, 32, 4}));
  EXPECT_EQ(labels, std::vector<std::int64_t>(kImages.labels.begin(), kImages.labels.end()));
  ASSERT_EQ(images.size(), kImages.pixels.size());
  for (std::size_t i = 0; i < images.size(); ++i)
    ASSERT_EQ(images[i], (static_cast<float>(kImages.pixels[i]) / 255 - 0.5f) / 0.25f);
}

// What a sample looks like in an epoch, and in which step, is the same for any number of ranks.
RC_GTEST_PROP(BatchLoader, RanksShareOneEpoch, ()) {
  const auto global_batch = *rc::gen::inRange<std::size_t>(1, 40);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const EpochOrder order(kImages.size(), 70, seed);
  std::vector<std::multimap<std::int64_t, std::vector<float>>> expected;
  for (int ranks : {1, 2, 3, 8}) {
    std::vector<std::multimap<std::int64_t, std::vector<float>>> steps((70 + global_batch - 1) /
                                                                       global_batch);
    for (int rank = 0; rank < ranks; ++rank) {
      BatchLoader loader(kImages, kMean, kDeviation, {.augmentation = kAugmentation, .seed = seed});
      loader.queue(5, order.epoch(5), batch_shares(order.size(), global_batch, rank, ranks));
      std::size_t step = 0;
      for (; const std::optional<Batch> batch = loader.next(); ++step)
        for (std::size_t i = 0; i < batch->size(); ++i) {
          const auto image = batch->images.subspan(i * kImages.image_size(), kImages.image_size());
          steps.at(step).emplace(batch->labels[i], std::vector<float>(image.begin(), image.end()));
        }
      RC_ASSERT(step == steps.size());
    }
    // Equal labels come out in the order of their ranks, which is the order of the epoch.
    if (ranks == 1) expected = steps;
    RC_ASSERT(steps == expected);
  }
}

TEST(BatchLoader, EpochsQueuedEarlyFollowEachOther) {
  BatchLoader loader(kImages, kMean, kDeviation, {.augmentation = {}, .seed = 0, .ahead = 2});
  loader.queue(0, {1, 2, 3}, {{0, 2}, {2, 3}});
  loader.queue(1, {}, {});
  loader.queue(2, {4}, {{0, 1}});
  EXPECT_EQ(loader.next()->size(), 2u);
  EXPECT_EQ(loader.next()->labels[0], kImages.labels[3]);
  EXPECT_FALSE(loader.next());
  EXPECT_FALSE(loader.next());
  EXPECT_EQ(loader.next()->labels[0], kImages.labels[4]);
  EXPECT_FALSE(loader.next());
  EXPECT_THROW(loader.next(), UsageError);
  loader.queue(3, {5}, {{0, 1}});
  EXPECT_EQ(loader.next()->labels[0], kImages.labels[5]);
}

TEST(BatchLoader, AnEmptyShareIsABatch) {
  BatchLoader loader(kImages, kMean, kDeviation);
  loader.queue(0, {1, 2}, {{0, 2}, {2, 2}});
  EXPECT_EQ(loader.next()->size(), 2u);
  const std::optional<Batch> last = loader.next();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->size(), 0u);
  EXPECT_FALSE(loader.next());
}

TEST(BatchLoader, TheViewHoldsUntilTheFollowingNext) {
  for (int ahead : {1, 4}) {
    BatchLoader loader(kImages, kMean, kDeviation, {.augmentation = {}, .seed = 0, .ahead = ahead});
    loader.queue(0, in_order(100), batch_shares(100, 1, 0, 1));
    for (std::size_t i = 0; i < 100; ++i) {
      const Batch batch = *loader.next();
      if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // let the thread run ahead
      ASSERT_EQ(batch.labels[0], kImages.labels[i]);
      ASSERT_EQ(batch.images[7], (static_cast<float>(kImages.image(i)[7]) / 255 - 0.5f) / 0.25f);
    }
  }
}

TEST(BatchLoader, FailuresOnTheThreadSurfaceInTurn) {
  BatchLoader loader(kImages, kMean, kDeviation);
  loader.queue(6, {1, 2, 100}, {{0, 2}, {2, 3}});
  EXPECT_EQ(loader.next()->size(), 2u);
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(message_of<UsageError>([&] { loader.next(); }),
              "loader: sample 100 in epoch 6, expected one below 100");
}

TEST(BatchLoader, CanEndAtAnyTime) {
  for (int taken = 0; taken < 6; ++taken) {
    BatchLoader loader(kImages, kMean, kDeviation);
    loader.queue(0, in_order(100), batch_shares(100, 10, 0, 1));
    for (int i = 0; i < taken; ++i) loader.next();
  }
  BatchLoader(kImages, kMean, kDeviation);
}

TEST(BatchLoader, CountsTheSecondsItWaits) {
  // So large that making one takes longer than a busy machine keeps this thread from asking for it.
  const Images large = random_images(1, 2000, 2000, 4, 1);
  BatchLoader loader(
      large, kMean, kDeviation,
      {.augmentation = {.pad = 0, .flip = false, .rotate_degrees = 90}, .seed = 0, .ahead = 1});
  loader.queue(0, in_order(4), batch_shares(4, 1, 0, 1));
  loader.next();
  EXPECT_GT(loader.first_wait_seconds(), 0);
  EXPECT_EQ(loader.wait_seconds(), 0);
  while (loader.next()) {
  }
  EXPECT_GT(loader.wait_seconds(), 0);
  loader.queue(1, in_order(4), batch_shares(4, 4, 0, 1));
  loader.next();
  EXPECT_EQ(loader.wait_seconds(), 0);
}

TEST(BatchLoader, ABatchMadeAheadIsNotWaitedFor) {
  BatchLoader loader(kImages, kMean, kDeviation, {.augmentation = {}, .seed = 0, .ahead = 1});
  loader.queue(0, {1, 2}, {{0, 1}, {1, 2}});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the second is made while the first is held
  loader.next();
  EXPECT_EQ(loader.first_wait_seconds(), 0);
  EXPECT_EQ(loader.wait_seconds(), 0);
}

TEST(BatchLoader, ChecksWhatItIsGiven) {
  const std::vector<float> three = {1, 1, 1};
  EXPECT_THROW(BatchLoader(kImages, three, three), UsageError);
  EXPECT_THROW(BatchLoader(kImages, kMean, kDeviation, {.augmentation = {.pad = -1}}), UsageError);
  EXPECT_THROW(BatchLoader(kImages, kMean, kDeviation, {.augmentation = {}, .seed = 0, .ahead = 0}),
               UsageError);
  BatchLoader loader(kImages, kMean, kDeviation);
  EXPECT_THROW(loader.queue(0, {1, 2}, {{0, 3}}), UsageError);
  EXPECT_THROW(loader.queue(0, {1, 2}, {{2, 1}}), UsageError);
}

}  // namespace
}  // namespace accordion
