#include "accordion/train/feed.h"

namespace accordion {

std::unique_ptr<Feed> make_feed(const Dataset& data, const TrainOptions& options, int rank, int ranks) {
  return std::visit([&](const auto& contents) { return feed_of(contents, options, rank, ranks); },
                    data.contents);
}

std::vector<Share> test_batches(std::size_t samples, int rank, int ranks) {
  constexpr std::size_t kBatch = 250;
  const Share mine = share(0, samples, rank, ranks);
  std::vector<Share> batches;
  for (std::size_t at = mine.begin; at < mine.end; at += kBatch)
    batches.push_back({at, std::min(at + kBatch, mine.end)});
  return batches;
}

}  // namespace accordion
