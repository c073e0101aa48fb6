// Images: shuffled anew in every epoch, and made ready by a thread of their own.
#include <numeric>

#include "accordion/data/loader.h"
#include "accordion/train/batch_tensors.h"
#include "accordion/train/feed.h"

namespace accordion {
namespace {

class ImageFeed final : public Feed {
 public:
  ImageFeed(const ImageSet& data, const TrainOptions& options, int rank, int ranks)
      : images_(data.train),
        options_(options),
        rank_(rank),
        ranks_(ranks),
        order_(images_.size(), static_cast<std::size_t>(options.samples),
               static_cast<std::uint64_t>(options.seed)),
        loader_(images_, data.mean, data.deviation,
                {.augmentation = {options.crop_padding, options.flip, options.rotate},
                 .seed = static_cast<std::uint64_t>(options.seed)}) {}

  std::vector<Step> queue(int epoch, int accumulate, std::int64_t done) override {
    EpochPlan plan = plan_epoch(order_.size(), options_.batch, accumulate, rank_, ranks_, options_.drop_last);
    std::vector<Share>& batches = plan.micro_batches;
    batches.erase(batches.begin(), batches.begin() + static_cast<std::ptrdiff_t>(plan.begin_of(done)));
    loader_.queue(epoch, order_.epoch(epoch), std::move(batches));
    return std::move(plan.steps);
  }

  Example next() override {
    auto batch = loader_.next();
    if (!batch) batch = loader_.next();  // The end of an epoch.
    auto [images, labels] = batch_tensors(batch.value(), images_);
    return {images, labels};
  }

  double wait_seconds() const override { return loader_.wait_seconds(); }

 private:
  const Images& images_;
  const TrainOptions options_;
  const int rank_, ranks_;
  const EpochOrder order_;
  BatchLoader loader_;
};

}  // namespace

std::unique_ptr<Feed> feed_of(const ImageSet& data, const TrainOptions& options, int rank, int ranks) {
  return std::make_unique<ImageFeed>(data, options, rank, ranks);
}

void show_tests(const ImageSet& data, int, int rank, int ranks, const Look& look) {
  const Images& images = data.test;
  std::vector<std::uint32_t> order(images.size());
  std::iota(order.begin(), order.end(), 0);
  BatchLoader loader(images, data.mean, data.deviation);
  loader.queue(0, std::move(order), test_batches(images.size(), rank, ranks));
  while (const auto batch = loader.next()) {
    const auto [inputs, labels] = batch_tensors(*batch, images);
    look({inputs, labels});
  }
}

}  // namespace accordion
