#include "accordion/exchange/forecast.h"

#include <algorithm>

namespace accordion {
namespace {

// In units that know no remainder: the wire bytes of all ranks together.
std::uint64_t wire(const Tally& tally, int ranks) {
  const auto n = static_cast<std::uint64_t>(ranks);
  return n * tally.framed_bytes + 2 * (n - 1) * tally.summed_bytes;
}

Tally choose(const Tally& a, const Tally& b, bool wire_of_a, auto&& better) {
  const Tally& sent = wire_of_a ? a : b;
  return {better(a.payload_bytes, b.payload_bytes), better(a.paper_floats, b.paper_floats), sent.framed_bytes,
          sent.summed_bytes};
}

using Count = std::uint64_t;

// One round's messages of one tensor, in the order in which rank 0 counts them.
void add_round(const Compressor& codec, int i, Context context, TallyRange& range) {
  const Round what = codec.round(i, context);
  switch (what.pattern) {
    case Pattern::kSum:
    case Pattern::kMax:
      for (Tally* tally : {&range.least, &range.most})
        tally->sum(what.max_bytes, what.max_bytes / element_bytes(what.element));
      return;
    case Pattern::kGather:
      range.least.gather(what.fixed ? what.max_bytes : what.min_bytes, context.world);
      range.most.gather(what.max_bytes, context.world);
      return;
    case Pattern::kScatter:
      for (context.piece = 0; context.piece < context.world; ++context.piece)
        for (Tally* tally : {&range.least, &range.most})
          tally->scatter(codec.round(i, context).max_bytes, context.piece == context.rank);
      return;
  }
}

std::vector<TallyRange> epochs_of(const Shape& shape, const CodecOptions& level, const Routing& routing,
                                  int ranks, int epochs) {
  const auto codec = make_compressor(level, shape, ranks, routing);
  if (!codec) {
    Tally dense;
    dense.sum(shape.count() * sizeof(float), shape.count());
    return {{dense, dense}};
  }
  std::vector<TallyRange> ranges;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    TallyRange& range = ranges.emplace_back();
    for (int i = 0; i < codec->rounds(); ++i) add_round(*codec, i, {.epoch = epoch, .world = ranks}, range);
  }
  while (ranges.size() > 1 && ranges.back() == ranges[ranges.size() - 2]) ranges.pop_back();
  return ranges;
}

}  // namespace

Tally at_most_both(const Tally& a, const Tally& b, int ranks) {
  return choose(a, b, wire(a, ranks) <= wire(b, ranks), [](Count x, Count y) { return std::min(x, y); });
}

Tally at_least_both(const Tally& a, const Tally& b, int ranks) {
  return choose(a, b, wire(a, ranks) >= wire(b, ranks), [](Count x, Count y) { return std::max(x, y); });
}

StepForecast::StepForecast(const std::vector<TensorInfo>& tensors, const ExchangeOptions& given, int ranks,
                           int epochs)
    : levels_(static_cast<int>(given.levels.size())) {
  const ExchangeOptions options = as_published(given);
  for (const TensorInfo& tensor : tensors) {
    auto& levels = tensors_.emplace_back();
    for (const CodecOptions& level : options.levels)
      levels.push_back(epochs_of(tensor.shape, level, options.routing, ranks, std::max(1, epochs)));
  }
}

const TallyRange& StepForecast::tensor(std::size_t i, int level, int epoch) const {
  const std::vector<TallyRange>& epochs = tensors_.at(i).at(static_cast<std::size_t>(level));
  return epochs[std::min(static_cast<std::size_t>(epoch), epochs.size() - 1)];
}

TallyRange StepForecast::step(std::span<const int> levels, int epoch) const {
  TallyRange sum;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const TallyRange& range = tensor(i, levels[i], epoch);
    sum.least += range.least;
    sum.most += range.most;
  }
  return sum;
}

}  // namespace accordion
