// One bucket of gradients in, the group's mean out. The only caller of a gradient collective, so the bytes
// are counted here. State belongs to tensors, never to buckets: buckets get rebuilt.
//
// All layers of a bucket that use the same kind of collective in a round share one buffer and one call.
// Tensors that are not worth compressing share one dense sum.
//
// Called from one thread at a time: the communication thread during backward, the training thread between
// steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/exchange/layer.h"
#include "accordion/exchange/tally.h"
#include "accordion/exchange/traffic.h"
#include "accordion/exchange/watch.h"

namespace accordion {

// Where one tensor's gradient lies in a bucket.
struct Slice {
  int tensor;
  std::size_t offset, count;
};

// What one epoch leaves behind, for the record.
struct EpochStats {
  std::int64_t steps = 0;
  std::int64_t dropped_steps = 0;  // In which a rank had values that are not finite.
  Traffic traffic;
};

struct ExchangeOptions {
  std::vector<CodecOptions> levels = {NoneOptions{}};  // Mildest first.
  Routing routing = {};
  std::uint64_t seed = 0;
  Tracking track = {};
  // To the letter of Accordion's published code, where that differs.
  bool published = false;
  // Layers are encoded and decoded side by side. Results do not depend on it, but for the last bits of
  // ATOMO's: LAPACK has threads of its own.
  int threads = 1;
  // Notice what is not finite even if nothing is compressed: costs one pass over the sums.
  bool watch_dense = false;
};

// What `published` means for the other options.
ExchangeOptions as_published(ExchangeOptions options);

class Exchange {
 public:
  // All tensors start at level 0. Collective: throws an Error when ranks do not agree on what they send.
  Exchange(Communicator& gradients, std::vector<TensorInfo> tensors, ExchangeOptions options);

  std::size_t tensors() const { return layers_.size(); }
  const TensorInfo& tensor(std::size_t i) const { return layers_[i].info(); }
  int level(std::size_t i) const { return layers_[i].level(); }
  bool compresses(std::size_t i) const { return layers_[i].compresses(); }

  // From the next step on; one level per tensor. Collective, as the constructor is.
  void set_levels(std::span<const int> levels);
  void set_epoch(int epoch) { epoch_ = epoch; }

  // This rank's share of the step's samples times the number of ranks: 1 when all ranks have as many.
  void set_weight(double weight) { weight_ = weight; }

  // Replaces a bucket's gradients by their weighted mean over ranks. Gradients of double precision travel
  // dense.
  void mean(std::span<float> bucket, std::span<const Slice> slices);
  void mean(std::span<double> bucket, std::span<const Slice> slices);

  // After a step's last bucket: keeps what the codecs learned and did not send. False when a rank had values
  // that are not finite: then nothing of the step is kept, its means are worthless, and the caller must say
  // so.
  bool end_step();

  // The statistics since the last call; windows of a controller end where it wants them to.
  EpochStats take_epoch_stats();
  WindowStats take_window();

  // Everything that the next step depends on, between steps: each tensor's state under "tensor name/piece",
  // and the number of steps. A residual belongs to its rank. Levels come first: set_levels().
  void visit_state(StateVisitor& visitor);

 private:
  // One layer's share of one round's collective.
  struct Part {
    int round;
    int tensor;
    Round what;
    std::span<float> gradient;
    int piece = 0;           // Of a scattered round: the rank it is for.
    std::size_t offset = 0;  // In the send buffer.
    Encoded encoded = {};
  };
  template <class T>
  void watch(std::span<T> bucket, std::span<const Slice> slices, bool aggregated);
  void send_dense(std::span<float> bucket, std::span<const Slice> slices);
  void run_round(int i, std::span<float> bucket, std::span<const Slice> slices);
  void encode_parts(std::span<Part> parts);
  void reduce_parts(std::span<const Part> parts);
  void gather_parts(std::span<const Part> parts);
  void scatter_parts(std::span<const Part> parts);
  void receive_parts();
  void decode_frames(std::span<const Part> parts);
  Context context(int tensor, int piece = 0) const;
  void require_same_levels();
  template <class T>
  void dense_sum(std::span<T> values);
  static std::vector<Layer> make_layers(std::vector<TensorInfo> tensors, bool published);
  bool watches_dense() const { return compresses_ || options_.watch_dense; }

  Communicator& gradients_;
  ExchangeOptions options_;
  std::vector<Layer> layers_;
  Watch watch_;
  bool compresses_ = false;
  double weight_ = 1;
  int epoch_ = 0;
  std::uint64_t step_ = 0;
  bool finite_ = true;  // So far in this step, on this rank.
  EpochStats stats_;
  Tally tally_;
  // Kept between steps for their memory.
  std::vector<float> dense_;
  std::vector<std::byte> send_, receive_;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> lengths_;                 // Of what each rank sends here,
  std::vector<std::span<const std::byte>> scattered_;  // what goes to each,
  std::vector<std::span<std::byte>> places_;           // Of each rank's frames in what was received.
  std::vector<Message> messages_;
};

}  // namespace accordion
