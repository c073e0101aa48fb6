// A layer's codecs of several ranks in one thread: all rounds of a step, with the collectives made by hand. What
// the exchange does over a network, for trials, benchmarks and tests.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "accordion/compress/compressor.h"

namespace accordion {

struct LocalRank {
  Compressor& codec;
  Context context;
  Feedback feedback;
  std::span<float> mean;
};

// What one round's collective hands out.
struct LocalRound {
  Round what{};
  int world = 1;
  // One message a rank; of a scattered round, one for every piece of every rank. A sum or a maximum leaves one
  // payload, the result.
  std::vector<Encoded> encoded = {};
  std::vector<std::vector<std::byte>> payloads = {};

  bool finite() const;
  // What this rank decodes.
  std::vector<Message> received(int rank) const;
};

// Every rank encodes its messages of round i, and they are combined or handed out as they are.
LocalRound encode_round(int i, std::span<const LocalRank> ranks);

// Every rank encodes and decodes, round after round; each one's mean is then written. Committing is left to
// the caller.
std::vector<LocalRound> run_step(std::span<const LocalRank> ranks);

}  // namespace accordion
