// Which sample is in which batch, on which rank.
//
// An epoch is one permutation, cut into global batches, and each batch into one contiguous share per rank.
// The permutation knows nothing of ranks, so a global batch holds the same samples whatever their number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace accordion {

class EpochOrder {
 public:
  // Uses the first `samples` of the set shuffled by `seed`; 0 means all.
  EpochOrder(std::size_t dataset_size, std::size_t samples, std::uint64_t seed);

  std::size_t size() const { return used_.size(); }

  // The used samples in this epoch's order.
  std::vector<std::uint32_t> epoch(int epoch) const;

 private:
  std::uint64_t seed_;
  std::vector<std::uint32_t> used_;
};

// Positions [begin, end) of an epoch's order.
struct Share {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
  bool operator==(const Share&) const = default;
};

// The part of [begin, end) that belongs to `rank`. Sizes differ by at most one, the first being the larger;
// some are empty if ranks abound.
Share share(std::size_t begin, std::size_t end, int rank, int ranks);

// One rank's share of each global batch of an epoch. The last global batch may be smaller.
std::vector<Share> batch_shares(std::size_t samples, std::size_t global_batch, int rank, int ranks);

}  // namespace accordion
