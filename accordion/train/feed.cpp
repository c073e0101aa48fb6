#include "accordion/train/feed.h"

namespace accordion {

std::unique_ptr<Feed> make_feed(const Dataset& data, const TrainOptions& options, int rank, int ranks) {
  return std::visit([&](const auto& contents) { return feed_of(contents, options, rank, ranks); },
                    data.contents);
}

}  // namespace accordion
