// One layer's step on a few ranks of one thread: every rank encodes, the messages are combined as the
// communicator would, every rank decodes.
#pragma once

#include <memory>
#include <vector>

#include "accordion/compress/codecs.h"
#include "bench/gradients.h"

namespace accordion::bench {

inline constexpr int kRanks = 4;

// A round's result, as decode wants it.
struct Result {
  Pattern pattern = Pattern::kSum;
  std::vector<std::vector<std::byte>> payloads;
  std::vector<Encoded> encoded;

  // The first `count`, as if there were so many ranks. A sum has one.
  std::vector<Message> messages(std::size_t count) const;
};

// What one rank had and has. The residual stems from a real step before.
struct RankStep {
  std::unique_ptr<Compressor> compressor;
  std::vector<float> gradient, residual, next, mean;
  std::vector<float> momentum;  // DGC's, before the step.
  std::size_t payload_bytes = 0;

  Feedback feedback() {
    return residual.empty() ? Feedback{gradient, {}, {}} : Feedback{gradient, residual, next};
  }
};

struct GroupStep {
  std::vector<RankStep> ranks;
  std::vector<Result> results;  // By round.
};

Context step_context(int tensor, int rank, int step, int world = kRanks);

// Two steps from a fresh start; the second is returned, and not committed, so that it can be run again.
// No ranks: the tensor goes dense.
GroupStep run_group(const CodecOptions& codec, const TensorInfo& info, int tensor,
                    const Gradients& gradients);

}  // namespace accordion::bench
