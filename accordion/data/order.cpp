#include "accordion/data/order.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/data/draws.h"

namespace accordion {
namespace {

// Settles the first `count` places of a Fisher-Yates shuffle, so a longer prefix only adds to a shorter one.
void shuffle_prefix(std::vector<std::uint32_t>& items, std::size_t count, Draws draws) {
  for (std::size_t i = 0; i < count; ++i)
    std::swap(items[i], items[i + draws.below(static_cast<std::uint32_t>(items.size() - i))]);
}

}  // namespace

EpochOrder::EpochOrder(std::size_t dataset_size, std::size_t samples, std::uint64_t seed)
    : seed_(seed), used_(dataset_size) {
  assert(dataset_size <= std::numeric_limits<std::uint32_t>::max());
  if (samples > dataset_size)
    throw UsageError("samples=" + std::to_string(samples) + ", expected at most " +
                     std::to_string(dataset_size) + ", the size of the training set (0 for all)");
  std::iota(used_.begin(), used_.end(), 0);
  if (samples == 0 || samples == dataset_size) return;
  shuffle_prefix(used_, samples, Draws(Hash().add("samples").add(seed).value()));
  used_.resize(samples);
  std::sort(used_.begin(), used_.end());
}

std::vector<std::uint32_t> EpochOrder::epoch(int epoch) const {
  std::vector<std::uint32_t> order = used_;
  const auto number = static_cast<std::uint64_t>(epoch);
  shuffle_prefix(order, order.size(), Draws(Hash().add("order").add(seed_).add(number).value()));
  return order;
}

Share share(std::size_t begin, std::size_t end, int rank, int ranks) {
  assert(begin <= end && 0 <= rank && rank < ranks);
  const std::size_t size = end - begin;
  const auto part = static_cast<std::size_t>(rank), parts = static_cast<std::size_t>(ranks);
  // The first ranks take the remainder: rank 0, whose statistics speak for the run, is empty only if all are.
  const auto start = [&](std::size_t p) { return begin + size / parts * p + std::min(p, size % parts); };
  return {start(part), start(part + 1)};
}

std::vector<Share> batch_shares(std::size_t samples, std::size_t global_batch, int rank, int ranks) {
  if (global_batch == 0) throw UsageError("batch=0, expected at least 1");
  std::vector<Share> shares;
  for (std::size_t begin = 0; begin < samples; begin += global_batch)
    shares.push_back(share(begin, std::min(samples, begin + global_batch), rank, ranks));
  return shares;
}

}  // namespace accordion
