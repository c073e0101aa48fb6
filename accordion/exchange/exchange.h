// One bucket of gradients in, the group's mean out. The only caller of a gradient collective, so the bytes are counted
// here. State belongs to tensors, never to buckets: buckets get rebuilt.
//
// Called from one thread at a time: the communication thread during backward, the training thread between steps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/exchange/traffic.h"

namespace accordion {

struct TensorInfo {
  std::string name;
  std::vector<std::int64_t> shape;

  std::size_t count() const;
};

// Where one tensor's gradient lies in a bucket.
struct Slice {
  int tensor;
  std::size_t offset, count;
};

// What one epoch leaves behind, for the controller and the record.
struct EpochStats {
  std::int64_t steps = 0;
  Traffic traffic;
  // Per tensor, the norm of the sum of this rank's raw gradients. Empty unless norms are tracked.
  std::vector<double> norms;
};

class Exchange {
 public:
  // `track_norms` costs one addition an element; only the rank that decides needs it.
  Exchange(Communicator& gradients, std::vector<TensorInfo> tensors, bool track_norms);

  const std::vector<TensorInfo>& tensors() const { return tensors_; }

  // This rank's share of the step's samples times the number of ranks: 1 when all ranks have as many.
  void set_weight(double weight) { weight_ = weight; }

  // Replaces a bucket's gradients by their weighted mean over ranks. `last` marks the step's last bucket.
  void mean(std::span<float> bucket, std::span<const Slice> slices, bool last);
  void mean(std::span<double> bucket, bool last);

  // The statistics since the last call.
  EpochStats take_epoch_stats();

 private:
  template <class T>
  void dense_mean(std::span<T> values);

  Communicator& gradients_;
  std::vector<TensorInfo> tensors_;
  double weight_ = 1;
  EpochStats stats_;
  std::uint64_t dense_floats_ = 0, dense_doubles_ = 0;
  std::vector<std::vector<float>> sums_;  // Per tensor, this epoch's sum of raw gradients.
};

}  // namespace accordion
