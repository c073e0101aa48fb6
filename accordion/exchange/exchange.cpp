#include "accordion/exchange/exchange.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "accordion/kernels/dense.h"

namespace accordion {

std::size_t TensorInfo::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1},
                         [](std::size_t n, std::int64_t dim) { return n * static_cast<std::size_t>(dim); });
}

Exchange::Exchange(Communicator& gradients, std::vector<TensorInfo> tensors, bool track_norms)
    : gradients_(gradients), tensors_(std::move(tensors)) {
  if (!track_norms) return;
  for (const TensorInfo& tensor : tensors_) sums_.emplace_back(tensor.count());
}

// Scaling before the sum keeps it in range, and is exact where the number of ranks is a power of two.
template <class T>
void Exchange::dense_mean(std::span<T> values) {
  const T factor = static_cast<T>(weight_ / gradients_.size());
  if constexpr (std::is_same_v<T, float>) {
    if (factor != 1) kernels::scale(values, factor);
  } else {
    for (T& value : values) value *= factor;
  }
  gradients_.sum(values);
}

void Exchange::mean(std::span<float> bucket, std::span<const Slice> slices, bool last) {
  if (!sums_.empty())
    for (const Slice& slice : slices)
      kernels::add(bucket.subspan(slice.offset, slice.count), sums_[static_cast<std::size_t>(slice.tensor)]);
  dense_mean(bucket);
  dense_floats_ += bucket.size();
  stats_.steps += last;
}

void Exchange::mean(std::span<double> bucket, bool last) {
  dense_mean(bucket);
  dense_doubles_ += bucket.size();
  stats_.steps += last;
}

EpochStats Exchange::take_epoch_stats() {
  // Bytes follow from the epoch's total, so that they do not depend on how it was cut into buckets.
  stats_.traffic += dense_traffic(dense_floats_, sizeof(float), gradients_.size());
  stats_.traffic += dense_traffic(dense_doubles_, sizeof(double), gradients_.size());
  for (std::vector<float>& sum : sums_) {
    stats_.norms.push_back(std::sqrt(kernels::sum_of_squares(sum)));
    std::fill(sum.begin(), sum.end(), 0.0f);
  }
  dense_floats_ = dense_doubles_ = 0;
  return std::exchange(stats_, {});
}

}  // namespace accordion
