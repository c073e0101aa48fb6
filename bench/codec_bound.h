// The least a codec can take: the time to stream the bytes it cannot avoid.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "accordion/compress/codecs.h"

namespace accordion::bench {

// One sweep over a layer in round `round`: so many streams of n floats read, and so many written.
struct Pass {
  int round = 0, reads = 0, writes = 0;
};

// What encoding a layer cannot avoid, besides writing the message.
struct LeastWork {
  std::vector<Pass> passes;
  bool decomposes = false;  // Arithmetic that takes longer than any stream: a singular value decomposition.
  bool whole_step = false;  // A conversation: decoding its first round is part of the work.
};
LeastWork least_work(const CodecOptions& codec, bool feedback);

// The streams of one layer. Reads come from gradient, residual, third; writes go to next and second.
struct Streams {
  std::span<const float> gradient, residual, third;
  std::span<float> next, second;
};

// One pass, writing a message of `message.size()` bytes on the way.
void stream_encode(const Pass& pass, const Streams& streams, std::span<std::byte> message);

// Reads messages and writes the mean.
void stream_decode(std::span<const std::span<const std::byte>> messages, std::span<float> mean);

// ATOMO's bound is arithmetic: the singular value decomposition of the layer.
class SvdBound {
 public:
  explicit SvdBound(const Shape& shape);
  void run(std::span<const float> gradient);

 private:
  int m_, n_;
  std::vector<float> a_, sigma_, u_, vt_, work_;
  std::vector<int> iwork_;
};

}  // namespace accordion::bench
