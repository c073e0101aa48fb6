// What the layers of a bucket come to together, at the levels they get: all that the timeline of a step needs of them.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "accordion/perf/step.h"

namespace accordion::perf {

struct BucketLoad {
  struct Call {
    double bytes = 0, decode = 0;
  };
  struct Round {
    double encode = 0;
    std::array<Call, kCollectives> calls = {};
  };

  Call dense = {};
  std::array<Round, kMostRounds> rounds = {};
  std::size_t used_rounds = 0;

  void add(const LayerModel& layer, int level);
  const Cost& dense_cost(const Link& link) const {
    return link.dense && used_rounds == 0 ? *link.dense : link[Collective::kSum];
  }
};

// Between its begin and its end a bucket waits for nothing but itself, so two durations are all of its timeline.
struct BucketCost {
  double first_encode = 0, moving = 0;
  double processor = 0;  // Of both, what is not wire time.
  double wire_bytes = 0;
};

BucketCost cost_of(const BucketLoad& load, const Link& link, int ranks);

// By how much this bucket makes later whatever of backward comes after it.
inline double later_by(const BucketCost& cost, const StepModel& model) {
  return model.stretch * cost.processor + model.delay * cost.wire_bytes;
}

// When backward ends beside these buckets. Nothing of it comes after the last one.
double backward_beside(std::span<const BucketCost> costs, const StepModel& model);

// Buckets served in order.
class Service {
 public:
  Service(const StepModel& model, double backward) : model_(model), backward_(backward) {}

  void serve(double ready, const BucketCost& cost) {
    ready_ = ready + later_;
    const double begin = std::max({ready_, encoded_, end_before_});
    encode_begin_ = begin;
    encoded_ = after(begin, cost.first_encode);
    move_begin_ = std::max(encoded_, end_);
    end_before_ = end_;
    end_ = after(move_begin_, cost.moving);
    later_ += later_by(cost, model_);
  }

  // When what takes `seconds` with nothing beside it is over, if it begins then.
  double after(double begin, double seconds) const {
    const double beside = std::min(seconds, std::max(0.0, backward_ - begin) / model_.crowding);
    return begin + seconds + (model_.crowding - 1) * beside;
  }

  // Of the bucket served last.
  double ready() const { return ready_; }
  double encode_begin() const { return encode_begin_; }
  double encode_end() const { return encoded_; }
  double move_begin() const { return move_begin_; }
  double end() const { return end_; }

  double backward_end() const { return backward_; }
  double step_end() const { return std::max(backward_, end_); }

 private:
  const StepModel& model_;
  double backward_;
  double ready_ = 0, encode_begin_ = 0, encoded_ = 0, move_begin_ = 0, end_ = 0, end_before_ = 0;
  double later_ = 0;  // Whatever comes next.
};

// The step with these buckets.
double step_seconds(const StepModel& model, std::span<const BucketCost> costs);

}  // namespace accordion::perf
