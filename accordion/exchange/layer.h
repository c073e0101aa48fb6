// What the exchange keeps for one tensor between steps: its codec, and the part of its gradient not sent yet.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "accordion/compress/codecs.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/tensor.h"

namespace accordion {

// A level beside those of codecs: the gradient goes as it is.
inline constexpr int kDense = -1;

class Layer {
 public:
  // As published: a level change forgets what the codec knew, and a change to dense gradients what is owed.
  explicit Layer(TensorInfo info, bool published = false) : info_(std::move(info)), published_(published) {}

  const TensorInfo& info() const { return info_; }
  int level() const { return level_; }

  bool compresses() const { return compressor_ && !plain_; }
  // Null: the dense gradient is sent.
  Compressor* compressor() { return plain_ ? nullptr : compressor_.get(); }
  std::uint8_t codec() const { return codec_; }

  // From the next step on. The residual and what the codecs have in common stay; nothing is lost. At kDense, for which `codec`
  // is none, what the last codec knew waits for the next one.
  void set_level(int level, const CodecOptions& codec, int rank, int world, const Routing& routing);

  // While set, the gradient goes as it is; residual and codec wait untouched.
  void set_plain(bool plain) { plain_ = plain; }

  bool keeps_residual() const { return compressor_ && compressor_->wants_feedback(); }

  // The residual enters `feedback`; what the step leaves enters the next one's after commit(true).
  Feedback feedback(std::span<const float> gradient);

  // For a tensor that keeps no residual any more: adds what is still owed to the gradient, which then goes
  // out with it.
  void flush_into(std::span<float> gradient);
  bool flushes() const { return !plain_ && !keeps_residual() && !residual_.empty(); }

  void commit(bool finite);

  // The residual and the codec's own state.
  void save_state(const StateWriter& state) const;
  void load_state(const StateReader& state);
  // Of these, what this rank alone keeps.
  void forget_own();

 private:
  TensorInfo info_;
  bool published_;
  int level_ = 0;
  std::uint8_t codec_ = 0;
  bool plain_ = false;
  std::unique_ptr<Compressor> compressor_;
  State waiting_ = {};  // While dense: the last codec's.
  std::vector<float> residual_, next_;
  bool pending_ = false, flushed_ = false;
};

}  // namespace accordion
