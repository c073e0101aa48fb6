#include "bench/codec_group.h"

#include <algorithm>

#include "accordion/base/error.h"

namespace accordion::bench {

std::vector<Message> first_messages(const LocalRound& round, std::size_t count) {
  std::vector<Message> messages = round.received(0);
  messages.resize(std::min(count, messages.size()));
  return messages;
}

Context step_context(int tensor, int rank, int step, int world) {
  return {
      .seed = 1, .step = static_cast<std::uint64_t>(step), .tensor = tensor, .rank = rank, .world = world};
}

GroupStep run_group(const CodecOptions& codec, const TensorInfo& info, int tensor,
                    const Gradients& gradients) {
  GroupStep group;
  const std::size_t n = info.shape.count();
  for (int w = 0; w < kRanks; ++w) {
    RankStep rank;
    rank.compressor = make_compressor(codec, info.shape, kRanks, Routing{});
    if (!rank.compressor) return {};
    if (rank.compressor->round(0, step_context(tensor, 0, 0)).pattern == Pattern::kScatter)
      throw UsageError("bench codecs: " + codec_text(codec) +
                       " is exchanged in chunks, which is not timed here");
    rank.gradient.resize(n);
    rank.mean.resize(n);
    if (rank.compressor->wants_feedback()) {
      rank.residual.resize(n);
      rank.next.resize(n);
    }
    group.ranks.push_back(std::move(rank));
  }
  for (int step = 0; step < 2; ++step) {
    std::vector<LocalRank> ranks;
    for (int w = 0; w < kRanks; ++w) {
      RankStep& rank = group.ranks[static_cast<std::size_t>(w)];
      gradients.fill(tensor, w, step, rank.gradient);
      State state;
      rank.compressor->save_state(StateWriter(state));
      if (traits_of(codec).momentum) StateReader(state).get("momentum", rank.momentum, n);
      ranks.push_back({*rank.compressor, step_context(tensor, w, step), rank.feedback(), rank.mean});
    }
    group.results = run_step(ranks);
    if (step > 0) break;
    for (RankStep& rank : group.ranks) {
      rank.compressor->commit(true);
      rank.residual.swap(rank.next);
    }
  }
  for (const LocalRound& round : group.results)
    for (std::size_t w = 0; w < group.ranks.size(); ++w)
      group.ranks[w].payload_bytes += round.encoded[w].bytes;
  return group;
}

}  // namespace accordion::bench
