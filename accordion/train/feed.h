// What a rank trains on, as tensors: micro-batch after micro-batch, an epoch at a time. There is one feed for
// each kind of data; what they share is the plan of an epoch.
#pragma once

#include <torch/torch.h>

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
  // micro-batches each.
  virtual std::vector<Step> queue(int epoch, int accumulate) = 0;

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

}  // namespace accordion
