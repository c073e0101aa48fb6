// What tests of single codecs share: some ranks in one thread, with the collective made by hand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "accordion/base/noise_testing.h"
#include "accordion/compress/compressor.h"

namespace accordion {

using Vector = std::vector<float>;
using Bytes = std::vector<std::byte>;

inline Shape flat(std::size_t n) {
  return {{static_cast<std::int64_t>(n)}};
}

inline Context at(int rank, int world, std::uint64_t step = 0) {
  return {.seed = 5, .step = step, .rank = rank, .world = world};
}

// What exchange makes of one round's messages: all of them, or their sum or largest in the first's place.
inline std::vector<Bytes> combine(const Round& round, std::vector<Bytes> sent) {
  if (round.pattern == Pattern::kGather) return sent;
  const auto reduce = [&](auto type) {
    using T = decltype(type);
    auto* x = reinterpret_cast<T*>(sent[0].data());
    for (std::size_t rank = 1; rank < sent.size(); ++rank)
      for (std::size_t k = 0; k < sent[0].size() / sizeof(T); ++k) {
        const T y = reinterpret_cast<const T*>(sent[rank].data())[k];
        x[k] = round.pattern == Pattern::kMax ? std::max(x[k], y) : static_cast<T>(x[k] + y);
      }
  };
  if (round.element == Element::kFloat) reduce(0.0f);
  if (round.element == Element::kInt8) reduce(std::int8_t{});
  if (round.element == Element::kInt16) reduce(std::int16_t{});
  sent.resize(1);
  return sent;
}

// One step of all ranks without error feedback; the mean, after checking that ranks agree, and that messages
// weigh what payload_bytes says, or at most that where their length varies.
template <class Options>
Vector group_mean(const Options& options, const std::vector<Vector>& inputs, std::uint64_t step = 0) {
  const int world = static_cast<int>(inputs.size());
  const std::size_t n = inputs[0].size();
  std::vector<std::unique_ptr<Compressor>> codecs;
  for (int rank = 0; rank < world; ++rank) codecs.push_back(make(options, flat(n)));
  std::vector<Vector> means(inputs.size(), Vector(n, NAN));
  std::size_t total = 0;
  bool fixed = true;
  for (int i = 0; i < codecs[0]->rounds(); ++i) {
    const Round round = codecs[0]->round(i, at(0, world));
    fixed = fixed && round.fixed;
    std::vector<Bytes> sent(inputs.size(), Bytes(round.max_bytes));
    std::vector<Message> messages(inputs.size());
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      const Encoded encoded = codecs[rank]->encode(i, at(static_cast<int>(rank), world, step),
                                                   {inputs[rank], {}, {}}, sent[rank]);
      EXPECT_TRUE(encoded.finite);
      EXPECT_TRUE(round.fixed ? encoded.bytes == round.max_bytes : encoded.bytes <= round.max_bytes);
      sent[rank].resize(encoded.bytes);
      messages[rank] = {{}, encoded.count, encoded.flags};
    }
    total += sent[0].size();
    sent = combine(round, std::move(sent));
    messages.resize(sent.size());
    for (std::size_t k = 0; k < sent.size(); ++k) messages[k].payload = sent[k];
    for (std::size_t rank = 0; rank < inputs.size(); ++rank)
      codecs[rank]->decode(i, at(static_cast<int>(rank), world), messages, means[rank]);
  }
  const std::size_t formula = payload_bytes(options, flat(n), world);
  EXPECT_TRUE(fixed ? total == formula : total <= formula) << total << " bytes, formula " << formula;
  for (const Vector& mean : means) EXPECT_EQ(mean, means[0]);
  return means[0];
}

}  // namespace accordion
