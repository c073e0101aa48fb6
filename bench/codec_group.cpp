#include "bench/codec_group.h"

#include <algorithm>
#include <cstdint>

#include "accordion/base/error.h"
#include "accordion/kernels/halves.h"

namespace accordion::bench {
namespace {

template <class T, class Combine>
void combine_into(std::vector<std::vector<std::byte>>& payloads, Combine combine) {
  T* to = reinterpret_cast<T*>(payloads[0].data());
  for (std::size_t rank = 1; rank < payloads.size(); ++rank) {
    const T* from = reinterpret_cast<const T*>(payloads[rank].data());
    for (std::size_t i = 0; i < payloads[0].size() / sizeof(T); ++i) to[i] = combine(to[i], from[i]);
  }
}

void sum_sixteen_bits(std::vector<std::vector<std::byte>>& payloads, decltype(&kernels::sum_halves) sum) {
  std::vector<const std::uint16_t*> parts;
  for (const auto& payload : payloads)
    parts.push_back(reinterpret_cast<const std::uint16_t*>(payload.data()));
  sum(parts, {reinterpret_cast<std::uint16_t*>(payloads[0].data()), payloads[0].size() / 2});
}

// What the communicator does with one message of each rank: a gather keeps all.
void combine(const Round& round, Result& result) {
  const auto add = [](auto a, auto b) { return static_cast<decltype(a)>(a + b); };
  auto& payloads = result.payloads;
  if (round.pattern == Pattern::kGather) return;
  if (round.pattern == Pattern::kMax)
    combine_into<float>(payloads, [](float a, float b) { return std::max(a, b); });
  else if (round.element == Element::kFloat)
    combine_into<float>(payloads, add);
  else if (round.element == Element::kInt8)
    combine_into<std::int8_t>(payloads, add);
  else if (round.element == Element::kInt16)
    combine_into<std::int16_t>(payloads, add);
  else if (round.element == Element::kHalf)
    sum_sixteen_bits(payloads, kernels::sum_halves);
  else if (round.element == Element::kBfloat16)
    sum_sixteen_bits(payloads, kernels::sum_bfloat16s);
  payloads.resize(1);
}

std::vector<Result> exchange(std::vector<RankStep>& ranks, int tensor, int step) {
  std::vector<Result> results(static_cast<std::size_t>(ranks[0].compressor->rounds()));
  for (RankStep& rank : ranks) rank.payload_bytes = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const int index = static_cast<int>(i);
    const Round round = ranks[0].compressor->round(index, step_context(tensor, 0, step));
    results[i].pattern = round.pattern;
    for (int w = 0; w < kRanks; ++w) {
      RankStep& rank = ranks[static_cast<std::size_t>(w)];
      std::vector<std::byte> out(round.max_bytes);
      results[i].encoded.push_back(
          rank.compressor->encode(index, step_context(tensor, w, step), rank.feedback(), out));
      out.resize(results[i].encoded.back().bytes);
      rank.payload_bytes += out.size();
      results[i].payloads.push_back(std::move(out));
    }
    combine(round, results[i]);
    for (int w = 0; w < kRanks; ++w) {
      RankStep& rank = ranks[static_cast<std::size_t>(w)];
      rank.compressor->decode(index, step_context(tensor, w, step), results[i].messages(kRanks), rank.mean);
    }
  }
  return results;
}

}  // namespace

std::vector<Message> Result::messages(std::size_t count) const {
  std::vector<Message> messages;
  for (std::size_t rank = 0; rank < std::min(count, payloads.size()); ++rank)
    messages.push_back({payloads[rank], encoded[rank].count, encoded[rank].flags});
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
    const Pattern pattern = rank.compressor->round(0, step_context(tensor, 0, 0)).pattern;
    if (pattern != Pattern::kSum && pattern != Pattern::kMax && pattern != Pattern::kGather)
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
    for (int w = 0; w < kRanks; ++w) {
      RankStep& rank = group.ranks[static_cast<std::size_t>(w)];
      gradients.fill(tensor, w, step, rank.gradient);
      State state;
      rank.compressor->save_state(StateWriter(state));
      if (const auto found = state.find("momentum"); found != state.end())
        rank.momentum = std::get<std::vector<float>>(found->second);
    }
    group.results = exchange(group.ranks, tensor, step);
    if (step > 0) break;
    for (RankStep& rank : group.ranks) {
      rank.compressor->commit(true);
      rank.residual.swap(rank.next);
    }
  }
  return group;
}

}  // namespace accordion::bench
