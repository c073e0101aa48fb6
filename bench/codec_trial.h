// A codec at work on a model's own gradients: seconds to encode and to decode, messages, memory.
#pragma once

#include <memory>
#include <vector>

#include "accordion/compress/codecs.h"
#include "accordion/perf/profile.h"

namespace accordion::bench {

// Of several steps: by step, by tensor.
using RealGradients = std::vector<std::vector<std::vector<float>>>;

// A codec on all tensors of a model, on one rank of a group that is made up here: the others' gradients are this rank's of
// other steps.
class CodecTrial {
 public:
  // `ranks` of the group that the codec is to work in. Those that gather are tried in one of kMostMessages.
  CodecTrial(const CodecOptions& codec, const std::vector<TensorInfo>& tensors,
             const RealGradients& gradients, int ranks, int threads);
  ~CodecTrial();

  static constexpr int kMostMessages = 8;

  int rounds() const { return rounds_; }
  // Whether decoding in this round costs something for every message.
  bool gathers(int round) const;

  // Over all layers; seconds. In the order of a step, and then again().
  double encode(int round);
  double decode(int round, int messages);
  double decode(int round) { return decode(round, world_); }
  void again();

  // Messages of the whole model, as one rank contributes them; `buckets`: so many times sizes travel where they vary.
  std::vector<perf::RoundProfile> messages(std::size_t buckets) const;
  double extra_bytes() const;  // Residuals and the codec's state.

 private:
  struct LayerTrial;

  template <class Function>
  double time(Function&& function);

  int ranks_, world_ = 1, threads_, rounds_ = 0;
  double dense_bytes_ = 0;
  std::vector<std::unique_ptr<LayerTrial>> layers_;
};

}  // namespace accordion::bench
