// What a rank trains on, as tensors: micro-batch after micro-batch, an epoch at a time; and what it is tested
// on. Each kind of data has its own way, in a source of its own; what they share is the plan of an epoch.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

#include "accordion/data/dataset.h"
#include "accordion/run/options.h"
#include "accordion/run/plan.h"

namespace accordion {

// A batch as the model takes it, and one target for each row of its scores. Views that hold until the
// following next().
struct Example {
  torch::Tensor input, targets;
};

class Feed {
 public:
  virtual ~Feed() = default;

  // The epoch that follows when those before it have been read: its steps, of up to `accumulate`
  // micro-batches each. The first `done` of them have been taken before, and their batches do not come again.
  virtual std::vector<Step> queue(int epoch, int accumulate, std::int64_t done = 0) = 0;

  virtual Example next() = 0;

  // How long next() had to wait in the epoch last read from, but for its first batch.
  virtual double wait_seconds() const { return 0; }
};

// A feed keeps a reference to its data. It takes seed, batch, samples and what concerns its kind from the
// options.
std::unique_ptr<Feed> feed_of(const ImageSet& data, const TrainOptions& options, int rank, int ranks);
std::unique_ptr<Feed> feed_of(const TextSet& data, const TrainOptions& options, int rank, int ranks);
std::unique_ptr<Feed> feed_of(const TableSet& data, const TrainOptions& options, int rank, int ranks);

std::unique_ptr<Feed> make_feed(const Dataset& data, const TrainOptions& options, int rank, int ranks);

// The rank's part of the test set, batch by batch. All ranks together see every sample once, and in batches of
// the same size whatever their number. `window`: positions of text that a model is shown at a time. A target
// below 0 is none.
using Look = std::function<void(const Example&)>;
void show_tests(const ImageSet& data, int window, int rank, int ranks, const Look& look);
void show_tests(const TextSet& data, int window, int rank, int ranks, const Look& look);
void show_tests(const TableSet& data, int window, int rank, int ranks, const Look& look);

// How a rank's share of samples is cut for that.
std::vector<Share> test_batches(std::size_t samples, int rank, int ranks);

}  // namespace accordion
