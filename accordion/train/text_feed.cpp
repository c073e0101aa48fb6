// Text: cut into as many contiguous streams as all ranks' batches have places, which never change. A
// micro-batch is the next few positions of this rank's streams, so a model that remembers the last one reads
// on where it stopped.
#include "accordion/data/streams.h"
#include "accordion/train/feed.h"

namespace accordion {
namespace {

class TextFeed final : public Feed {
 public:
  TextFeed(const TextSet& data, const TrainOptions& options, int rank, int ranks)
      : options_(options),
        ranks_(ranks),
        batch_(static_cast<std::size_t>(options.batch)),
        mine_{static_cast<std::size_t>(rank) * batch_, static_cast<std::size_t>(rank + 1) * batch_},
        streams_(
            std::span(data.train)
                .first(options.samples > 0 ? static_cast<std::size_t>(options.samples) : data.train.size()),
            batch_ * static_cast<std::size_t>(ranks), Tail::kDrop) {}

  std::vector<Step> queue(int epoch, int accumulate, std::int64_t done) override {
    EpochPlan plan =
        plan_text(streams_.length(), options_.batch, options_.bptt, accumulate, ranks_, options_.drop_last);
    next_ = plan.begin_of(done);
    windows_ = std::move(plan.micro_batches);
    return std::move(plan.steps);
  }

  Example next() override {
    const Share window = windows_.at(next_++);
    inputs_.resize(batch_ * window.size());
    targets_.resize(inputs_.size());
    streams_.read(mine_, window, inputs_, targets_);
    const auto size = static_cast<std::int64_t>(inputs_.size());
    return {torch::from_blob(inputs_.data(), {options_.batch, size / options_.batch}, torch::kLong),
            torch::from_blob(targets_.data(), {size}, torch::kLong)};
  }

 private:
  const TrainOptions options_;
  const int ranks_;
  const std::size_t batch_;
  const Share mine_;
  const TextStreams streams_;
  std::vector<Share> windows_;
  std::size_t next_ = 0;
  std::vector<std::int64_t> inputs_, targets_;
};

}  // namespace

std::unique_ptr<Feed> feed_of(const TextSet& data, const TrainOptions& options, int rank, int ranks) {
  return std::make_unique<TextFeed>(data, options, rank, ranks);
}

// Ranks divide streams, and a stream is read from its beginning to its end.
void show_tests(const TextSet& data, int window, int rank, int ranks, const Look& look) {
  constexpr std::size_t kStreams = 32;
  const TextStreams text(data.test, std::min(kStreams, std::max<std::size_t>(data.test.size(), 2) - 1),
                         Tail::kPad);
  const Share mine = share(0, text.count(), rank, ranks);
  if (mine.size() == 0) return;
  const auto streams = static_cast<std::int64_t>(mine.size());
  for (std::size_t at = 0; at < text.length(); at += static_cast<std::size_t>(window)) {
    const Share positions{at, std::min(at + static_cast<std::size_t>(window), text.length())};
    const auto length = static_cast<std::int64_t>(positions.size());
    const torch::Tensor inputs = torch::empty({streams, length}, torch::kLong),
                        targets = torch::empty({streams * length}, torch::kLong);
    const auto size = static_cast<std::size_t>(streams * length);
    text.read(mine, positions, {inputs.data_ptr<std::int64_t>(), size},
              {targets.data_ptr<std::int64_t>(), size});
    look({inputs, targets});
  }
}

}  // namespace accordion
