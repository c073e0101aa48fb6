// What the layers of a bucket come to together, at the levels they get: all that the timeline of a step needs of them.
#pragma once

#include <algorithm>
#include <array>

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

// Buckets served in order.
class Service {
 public:
  explicit Service(const StepModel& model) : stretch_(model.stretch), delay_(model.delay) {}

  void serve(double ready, const BucketCost& cost) {
    ready_ = ready + later_;
    const double begin = std::max({ready_, encoded_, end_before_});
    encode_begin_ = begin;
    encoded_ = begin + cost.first_encode;
    move_begin_ = std::max(encoded_, end_);
    end_before_ = end_;
    end_ = move_begin_ + cost.moving;
    later_before_ = later_;
    later_ += stretch_ * cost.processor + delay_ * cost.wire_bytes;
  }

  // Of the bucket served last.
  double ready() const { return ready_; }
  double encode_begin() const { return encode_begin_; }
  double encode_end() const { return encoded_; }
  double move_begin() const { return move_begin_; }
  double end() const { return end_; }

  double backward_end(double backward) const { return backward + later_before_; }
  double step_end(double backward) const { return std::max(backward_end(backward), end_); }

 private:
  double stretch_, delay_;
  double ready_ = 0, encode_begin_ = 0, encoded_ = 0, move_begin_ = 0, end_ = 0, end_before_ = 0;
  double later_ = 0, later_before_ = 0;  // Whatever comes after the last bucket, and after the one before it.
};

}  // namespace accordion::perf
