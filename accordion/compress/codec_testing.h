// What tests of single codecs share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "accordion/base/noise_testing.h"
#include "accordion/compress/local_group.h"

namespace accordion {

using Vector = std::vector<float>;
using Bytes = std::vector<std::byte>;

inline Shape flat(std::size_t n) {
  return {{static_cast<std::int64_t>(n)}};
}

inline Context at(int rank, int world, std::uint64_t step = 0) {
  return {.seed = 5, .step = step, .rank = rank, .world = world};
}

// One step of all ranks without error feedback; the mean, after checking that ranks agree, and that messages
// weigh what payload_bytes says, or at most that where their length varies.
template <class Options>
Vector group_mean(const Options& options, const std::vector<Vector>& inputs, std::uint64_t step = 0) {
  const int world = static_cast<int>(inputs.size());
  const std::size_t n = inputs[0].size();
  std::vector<std::unique_ptr<Compressor>> codecs;
  std::vector<Vector> means(inputs.size(), Vector(n, NAN));
  std::vector<LocalRank> ranks;
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    codecs.push_back(make(options, flat(n)));
    ranks.push_back(
        {*codecs[rank], at(static_cast<int>(rank), world, step), {inputs[rank], {}, {}}, means[rank]});
  }
  std::size_t total = 0;
  bool fixed = true;
  for (const LocalRound& round : run_step(ranks)) {
    EXPECT_TRUE(round.finite());
    fixed = fixed && round.what.fixed;
    total += round.encoded[0].bytes;
    for (const Encoded& encoded : round.encoded)
      EXPECT_TRUE(round.what.fixed ? encoded.bytes == round.what.max_bytes
                                   : encoded.bytes <= round.what.max_bytes);
  }
  const std::size_t formula = payload_bytes(options, flat(n), world);
  EXPECT_TRUE(fixed ? total == formula : total <= formula) << total << " bytes, formula " << formula;
  for (const Vector& mean : means) EXPECT_EQ(mean, means[0]);
  return means[0];
}

}  // namespace accordion
