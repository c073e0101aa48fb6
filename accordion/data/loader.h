// Makes batches on a thread of its own, a few ahead of whoever reads them.
//
//   BatchLoader loader(data.train, data.mean, data.deviation, {.augmentation = {.pad = 4, .flip = true}});
//   loader.queue(epoch, order.epoch(epoch), batch_shares(order.size(), global_batch, rank, ranks));
//   while (const std::optional<Batch> batch = loader.next()) step(*batch);
//
// Queue the next epoch before the last batch of this one is read, and the two follow without a gap.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "accordion/data/augment.h"
#include "accordion/data/images.h"
#include "accordion/data/order.h"

namespace accordion {

// A view of the loader's memory, valid until the following next(). Empty if a rank's share of a batch is.
struct Batch {
  std::span<const float> images;  // NCHW
  std::span<const std::int64_t> labels;
  std::size_t size() const { return labels.size(); }
};

struct LoaderOptions {
  Augmentation augmentation;
  std::uint64_t seed = 0;
  int ahead = 3;  // batches made before they are asked for, at least 1
};

class BatchLoader {
 public:
  // Keeps a reference to `images`.
  BatchLoader(const Images& images, std::span<const float> mean, std::span<const float> deviation,
              LoaderOptions options = {});
  ~BatchLoader();  // at any time, also in the middle of an epoch

  // Appends an epoch: one batch per share of `order`.
  void queue(int epoch, std::vector<std::uint32_t> order, std::vector<Share> batches);

  // The next batch, or nothing once at the end of each queued epoch. Throws what went wrong on the thread.
  std::optional<Batch> next();

  // How long next() had to wait in the epoch last read from: for its first batch, and for all the others.
  double first_wait_seconds() const { return first_wait_seconds_; }
  double wait_seconds() const { return wait_seconds_; }

 private:
  struct Epoch {
    int number;
    std::vector<std::uint32_t> order;
    std::vector<Share> batches;
  };
  struct Buffer {
    std::vector<float> images;
    std::vector<std::int64_t> labels;
  };

  void work();
  void make(const Epoch& epoch, const Share& batch, Buffer& buffer) const;
  double wait_for_batch();

  const Images& images_;
  const ImageWriter writer_;
  const LoaderOptions options_;
  std::vector<Buffer> buffers_;  // batch i is in buffer i modulo their number

  // The reader's own.
  std::deque<std::size_t> epoch_batches_;  // of the epochs queued and not yet read to their end
  std::size_t position_ = 0;               // in the first of them
  double first_wait_seconds_ = 0, wait_seconds_ = 0;

  std::mutex mutex_;  // of everything below
  std::condition_variable work_to_do_, batch_made_;
  std::deque<Epoch> epochs_;
  std::size_t made_ = 0, taken_ = 0, released_ = 0;  // batches since the beginning
  bool stop_ = false;
  std::exception_ptr failure_;

  std::thread thread_;  // last, because it uses all the others
};

}  // namespace accordion
