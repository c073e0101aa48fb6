// Buckets of gradients in, the group's means out. The only caller of a gradient collective, so the bytes are
// counted here. State belongs to tensors, never to buckets: buckets get rebuilt.
//
// Called from one thread at a time, but for prepare(): the communication thread during backward, the training
// thread between steps.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/exchange/layer.h"
#include "accordion/exchange/rounds.h"
#include "accordion/exchange/tally.h"
#include "accordion/exchange/traffic.h"
#include "accordion/exchange/values.h"
#include "accordion/exchange/watch.h"

namespace accordion {

// A bucket's memory and what lies in it. Gradients of double precision travel dense; those of 16 bits travel as such while
// all of their bucket go dense, and are compressed in single precision.
struct GradientBucket {
  Values values;
  std::span<const Slice> slices;
};

// What a rank is owed and others are not: of no use to another rank, or in a group of another size.
enum class Residuals { kKeep, kDrop };

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
  // Whether a tensor that is not compressed any more has yet to be sent what was not.
  bool flushes(std::size_t i) const { return layers_[i].flushes(); }

  // From the next step on; one level per tensor, or kDense: its gradient goes as it is, with what was owed, and its codec's
  // knowledge waits for its return. Collective, as the constructor is.
  void set_levels(std::span<const int> levels);

  // While set, gradients go as they are, whatever their levels; what is owed and what codecs know waits untouched. The same on
  // every rank.
  void set_plain(bool plain);
  bool plain() const { return plain_; }
  void set_epoch(int epoch) { epoch_ = epoch; }

  // This rank's share of the step's samples times the number of ranks: 1 when all ranks have as many.
  void set_weight(double weight) { weight_ = weight; }
  double weight() const { return weight_; }

  // Gradients come, and go back, times this: a loss scale, the same on every rank. What is kept from step to step and what
  // is watched is without it.
  void set_scale(double scale) { scale_ = scale; }
  double scale() const { return scale_; }

  // Whether anything is owed to tensors, now or at another level: then one that no rank used in a step must be
  // left out of it.
  bool owes() const { return owes_; }

  // Whether what is not finite must be noticed in gradients that go dense, too.
  bool watches_dense() const { return compresses_ || options_.watch_dense; }

  // Of a bucket some of whose tensors this rank may not have used, those that some rank has. Collective.
  std::vector<Slice> used_by_any(std::span<const Slice> slices, std::span<const char> used);

  // A bucket's gradients become their weighted mean over ranks in two halves: prepare() calls no collective and
  // may run on another thread while an earlier bucket is under way in run(); at most two buckets are under way.
  // Both take buckets in the same order. A bucket stays where it is in between.
  void prepare(const GradientBucket& bucket);
  BucketTimes run();
  void mean(std::span<float> bucket, std::span<const Slice> slices);
  void mean(std::span<double> bucket, std::span<const Slice> slices);

  // A bucket that went dense by other means than this exchange: so many bytes of its values, and whether their mean, which
  // all ranks have, is finite.
  void count_elsewhere(std::size_t bytes, std::span<const Slice> slices, bool finite);

  // After a step's last bucket: keeps what the codecs learned and did not send. False when a rank had values
  // that are not finite: then nothing of the step is kept, its means are worthless, and the caller must say
  // so.
  bool end_step();

  // Instead of end_step() after a failure on this rank alone: nothing of the step is kept, and the others, who
  // may wait for this rank, are let go.
  void abandon_step(const std::string& reason);

  // The statistics since they were last taken; windows of a controller end where it wants them to.
  EpochStats epoch_stats() const;
  EpochStats take_epoch_stats();
  WindowStats take_window();

  // What this rank watches, and what somebody else has watched of the window under way: a tensor's gradients, added up, and the
  // sum of their squared norms. Between steps.
  const Tracking& tracking() const { return watch_.tracking(); }
  void add_to_window(std::size_t tensor, std::span<const float> sum, double squares) {
    watch_.add_sum(tensor, sum, squares);
  }

  // Everything that the next step depends on, between steps: each tensor's state under "tensor name/piece",
  // the number of steps, and what was counted. Levels come first: set_levels().
  void save_state(const StateWriter& state) const;
  void load_state(const StateReader& state, Residuals residuals = Residuals::kKeep);

 private:
  void require_valid(std::span<const int> levels) const;
  // A bucket under way.
  struct UnderWay {
    GradientBucket bucket = {};
    BucketRounds rounds;
    // Of 16-bit gradients; whether they travel as such, and how many became the largest of their kind.
    std::vector<float> wide = {};
    bool sixteen_bits_sent = false;
    std::uint64_t saturated = 0;
    BucketTimes times = {};

    // Where it is computed with; not of double precision.
    std::span<float> floats();
  };

  template <class T>
  void watch(std::span<T> bucket, std::span<const Slice> slices, bool aggregated);
  void require_same_levels();
  void prepare_floats(UnderWay& under_way);
  void prepare_sixteen_bits(UnderWay& under_way);
  void run_floats(UnderWay& under_way);
  template <class T>
  BucketCounts sum(std::span<T> values, std::span<const Slice> slices);
  void sum_sixteen_bits(UnderWay& under_way);
  void sum_doubles(UnderWay& under_way);
  void count(const BucketCounts& counts);
  static std::vector<Layer> make_layers(std::vector<TensorInfo> tensors, bool published);

  Communicator& gradients_;
  ExchangeOptions options_;
  std::vector<Layer> layers_;
  Watch watch_;
  bool plain_ = false;
  bool compresses_ = false, owes_ = false;
  double weight_ = 1, scale_ = 1;
  int epoch_ = 0;
  std::uint64_t step_ = 0;
  bool finite_ = true;  // So far in this step, on this rank.
  EpochStats stats_;
  Tally tally_;
  std::vector<std::int64_t> tensor_bytes_;
  std::array<UnderWay, 2> under_way_;
  std::uint64_t prepared_ = 0, run_ = 0;  // Buckets; each thread has its own count.
};

}  // namespace accordion
