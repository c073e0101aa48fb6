// One bucket's rounds: its messages are encoded, moved and decoded. What needs no answer from another rank is
// done by prepare(), so that it can run while another bucket's messages travel.
//
// All layers of a bucket that use the same kind of collective in a round share one buffer and one call.
// Tensors that are not worth compressing share one dense sum.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/exchange/bucket_times.h"
#include "accordion/exchange/layer.h"
#include "accordion/exchange/tally.h"

namespace accordion {

// Where one tensor's gradient lies in a bucket.
struct Slice {
  int tensor;
  std::size_t offset, count;
};

// What one tensor contributed to its rounds, or to a dense sum.
struct TensorBytes {
  int tensor;
  std::uint64_t payload_bytes;
};

// What a bucket adds to its step.
struct BucketCounts {
  Tally tally = {};
  std::vector<TensorBytes> tensors = {};  // Of the tally's payload; a tensor may be there more than once.
  std::uint64_t entries = 0, saturated = 0, control_bytes = 0;
  bool finite = true;  // As far as this rank sees.
  BucketTimes times = {};
};

class BucketRounds {
 public:
  BucketRounds(Communicator& gradients, std::span<Layer> layers, int threads)
      : gradients_(gradients), layers_(layers), threads_(threads) {}

  // Takes what the ranks add up on this rank. Calls no collective, and touches no layer of another bucket.
  // `bucket` and `slices` stay where they are until run() returns.
  void prepare(std::span<float> bucket, std::span<const Slice> slices, const Context& step);

  // Leaves the mean in the bucket. Collective. `check_dense`: notice what is not finite in dense sums too.
  BucketCounts run(bool check_dense);

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
    double encode_seconds = 0, decode_seconds = 0;
  };

  Layer& layer(int tensor) const { return layers_[static_cast<std::size_t>(tensor)]; }
  Context context(int tensor, int piece = 0) const;
  void prepare_dense();
  void send_dense(bool check);
  void encode_round(int i);
  void encode_parts(std::span<Part> parts);
  void send_round();
  void reduce_parts(std::span<Part> parts);
  void gather_parts(std::span<Part> parts);
  void scatter_parts(std::span<Part> parts);
  void receive_parts();
  void decode_frames(std::span<Part> parts);
  template <class Decode>
  void decode_parts(std::span<Part> parts, Decode decode);
  void decode_part(Part& part, std::span<const Message> messages);
  static void share(std::span<Part> parts, double Part::*of, double seconds);
  void note_times(std::span<const Part> parts);
  template <class Move>
  void timed(Pattern pattern, std::size_t bytes, Move move);

  Communicator& gradients_;
  std::span<Layer> layers_;
  int threads_;
  Context step_;
  std::span<float> bucket_;
  std::span<const Slice> slices_;
  BucketCounts counts_;
  // Kept between buckets for their memory.
  std::vector<float> dense_;  // Dense gradients that others lie between.
  std::vector<std::byte> send_, receive_;
  std::vector<Part> parts_;                            // Of the round under way,
  std::vector<std::span<Part>> kinds_;                 // by kind of collective.
  std::vector<std::uint64_t> lengths_;                 // Of what each rank sends here,
  std::vector<std::span<const std::byte>> scattered_;  // what goes to each,
  std::vector<std::span<std::byte>> places_;           // where each rank's frames lie in what was received.
  std::vector<Message> messages_;
};

}  // namespace accordion
