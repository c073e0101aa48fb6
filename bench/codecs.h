// Every codec on the layers of a real model: verified, then timed beside its bound and beside torch doing the
// same.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "accordion/compress/codecs.h"
#include "bench/gradients.h"

namespace accordion::bench {

struct CodecTiming {
  std::string codec;  // As it was asked for.
  std::size_t layers = 0, parameters = 0, payload_bytes = 0;
  double encode_ms = 0, decode_ms = 0, decode4_ms = 0;
  double encode_bound_ms = 0, decode_bound_ms = 0;
  std::optional<double> torch_ms;

  // Where decoding a first round is part of the work. Of all others, encoding is compared.
  bool whole_step = false;
  double ours_ms() const { return encode_ms + (whole_step ? decode_ms : 0); }
  double bound_ms() const { return encode_bound_ms + (whole_step ? decode_bound_ms : 0); }
  double over_bound() const { return ours_ms() / bound_ms(); }
  double torch_ratio() const { return torch_ms.value_or(0) / ours_ms(); }
  double payload_ratio() const {
    return static_cast<double>(parameters * sizeof(float)) / static_cast<double>(payload_bytes);
  }
};

// What a setting is to reach, where that was set: at most so many times its bound, and at least so many times
// torch's speed.
struct CodecGoal {
  std::optional<double> over_bound, torch_ratio;
};
CodecGoal goal_of(const CodecOptions& codec);

// Somebody else's implementation. `prepare` is told a setting and its layers, and returns false when there is
// none; then each `run` does the work once and returns its milliseconds.
struct CodecPeer {
  std::function<bool(const std::string& codec, const std::vector<TensorInfo>& layers,
                     const std::vector<float>& scales)>
      prepare;
  std::function<double()> run;
};

class CodecBench {
 public:
  CodecBench(std::string model, int threads, int repetitions);

  std::size_t parameters() const;
  const std::string& model() const { return model_; }

  // What is timed when nothing was asked for.
  std::vector<std::string> default_codecs() const;

  // Throws an Error when a result is wrong. Times are the least of all repetitions, and ours, the bound and
  // the peer take turns.
  CodecTiming run(const std::string& codec, const CodecPeer* peer);

 private:
  std::string model_;
  int threads_, repetitions_;
  Gradients gradients_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace accordion::bench
