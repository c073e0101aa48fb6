// One layer's step on a few ranks of one thread, from a real step before.
#pragma once

#include <memory>
#include <vector>

#include "accordion/compress/codecs.h"
#include "accordion/compress/local_group.h"
#include "bench/gradients.h"

namespace accordion::bench {

inline constexpr int kRanks = 4;

// What a rank decodes, as if there were only `count` ranks. A sum has one message.
std::vector<Message> first_messages(const LocalRound& round, std::size_t count);

// What one rank had and has. The residual stems from a real step before.
struct RankStep {
  std::unique_ptr<Compressor> compressor;
  std::vector<float> gradient, residual, next, mean;
  std::vector<float> momentum;  // Before the step, where the codec has its own.
  std::size_t payload_bytes = 0;

  Feedback feedback() {
    return residual.empty() ? Feedback{gradient, {}, {}} : Feedback{gradient, residual, next};
  }
};

struct GroupStep {
  std::vector<RankStep> ranks;
  std::vector<LocalRound> results;  // By round.
};

Context step_context(int tensor, int rank, int step, int world = kRanks);

// Two steps from a fresh start; the second is returned, and not committed, so that it can be run again.
// No ranks: the tensor goes dense.
GroupStep run_group(const CodecOptions& codec, const TensorInfo& info, int tensor,
                    const Gradients& gradients);

}  // namespace accordion::bench
