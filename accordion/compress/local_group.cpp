#include "accordion/compress/local_group.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "accordion/kernels/halves.h"

namespace accordion {
namespace {

using Payloads = std::vector<std::vector<std::byte>>;

template <class T>
void combine(Payloads& payloads, Pattern pattern) {
  T* to = reinterpret_cast<T*>(payloads[0].data());
  for (std::size_t rank = 1; rank < payloads.size(); ++rank) {
    const T* from = reinterpret_cast<const T*>(payloads[rank].data());
    for (std::size_t i = 0; i < payloads[0].size() / sizeof(T); ++i)
      to[i] = pattern == Pattern::kMax ? std::max(to[i], from[i]) : static_cast<T>(to[i] + from[i]);
  }
}

void sum_sixteen_bits(Payloads& payloads, decltype(&kernels::sum_halves) sum) {
  std::vector<const std::uint16_t*> parts;
  for (const auto& payload : payloads)
    parts.push_back(reinterpret_cast<const std::uint16_t*>(payload.data()));
  sum(parts, {reinterpret_cast<std::uint16_t*>(payloads[0].data()), payloads[0].size() / 2});
}

// Into the first one's place.
void combine(const Round& what, Payloads& payloads) {
  switch (what.element) {
    case Element::kFloat:
      combine<float>(payloads, what.pattern);
      break;
    case Element::kByte:
    case Element::kInt8:
      combine<std::int8_t>(payloads, what.pattern);
      break;
    case Element::kInt16:
      combine<std::int16_t>(payloads, what.pattern);
      break;
    case Element::kHalf:
      sum_sixteen_bits(payloads, kernels::sum_halves);
      break;
    case Element::kBfloat16:
      sum_sixteen_bits(payloads, kernels::sum_bfloat16s);
      break;
  }
  payloads.resize(1);
}

}  // namespace

bool LocalRound::finite() const {
  return std::all_of(encoded.begin(), encoded.end(), [](const Encoded& each) { return each.finite; });
}

std::vector<Message> LocalRound::received(int rank) const {
  if (what.pattern == Pattern::kSum || what.pattern == Pattern::kMax) return {{.payload = payloads[0]}};
  const auto ranks = static_cast<std::size_t>(world);
  const std::size_t pieces = payloads.size() / ranks;
  std::vector<Message> messages;
  for (std::size_t from = 0; from < ranks; ++from) {
    const std::size_t k = pieces == 1 ? from : from * pieces + static_cast<std::size_t>(rank);
    messages.push_back({payloads[k], encoded[k].count, encoded[k].flags});
  }
  return messages;
}

LocalRound encode_round(int i, std::span<const LocalRank> ranks) {
  LocalRound round{.what = ranks[0].codec.round(i, ranks[0].context),
                   .world = static_cast<int>(ranks.size())};
  for (const LocalRank& rank : ranks) {
    Context context = rank.context;
    const int pieces = round.what.pattern == Pattern::kScatter ? round.world : 1;
    for (context.piece = 0; context.piece < pieces; ++context.piece) {
      std::vector<std::byte> out(rank.codec.round(i, context).max_bytes);
      round.encoded.push_back(rank.codec.encode(i, context, rank.feedback, out));
      out.resize(round.encoded.back().bytes);
      round.payloads.push_back(std::move(out));
    }
  }
  if (round.what.pattern == Pattern::kSum || round.what.pattern == Pattern::kMax)
    combine(round.what, round.payloads);
  return round;
}

std::vector<LocalRound> run_step(std::span<const LocalRank> ranks) {
  std::vector<LocalRound> rounds;
  for (int i = 0; i < ranks[0].codec.rounds(); ++i) {
    rounds.push_back(encode_round(i, ranks));
    for (const LocalRank& rank : ranks)
      rank.codec.decode(i, rank.context, rounds.back().received(rank.context.rank), rank.mean);
  }
  return rounds;
}

}  // namespace accordion
