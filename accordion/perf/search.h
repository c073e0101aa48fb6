// A walk through the levels of all layers, that prices a change of a few layers without going through all others.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "accordion/perf/bucket.h"

namespace accordion::perf {

// How good a choice is: as little as possible beyond `limit`, then as little or as much traffic as possible.
struct Aim {
  double limit = 0;  // Seconds.
  bool least_traffic = false;
  double seconds_per_byte = 0;  // Not 0: seconds and traffic at this price instead, whatever the limit.
};

struct Score {
  double seconds = 0, wire_bytes = 0;
};

class Search {
 public:
  explicit Search(const StepModel& model);

  const std::vector<int>& levels() const { return levels_; }
  const Score& score() const { return score_; }

  // All layers at this level, or at their strongest where they may not get it.
  void start(int level);
  void start(const std::vector<int>& levels);
  // Takes what improves, layer by layer, bucket by bucket and for all, until nothing does, or no work is allowed any more.
  void descend(const Aim& aim);
  // Some random layers to random levels, which they keep until others have settled around them: a large layer in place of
  // several small ones is out of reach of single steps.
  void kick(int layers);

  // So that time is bounded, and the result is the same on a slow machine.
  void allow(std::int64_t work) { left_ = work; }
  bool exhausted() const { return left_ <= 0; }
  int strongest() const { return strongest_; }
  int free_layers() const { return static_cast<int>(free_.size()); }

 private:
  struct Change {
    std::size_t layer;
    int level;
  };

  bool held(std::size_t layer) const;
  int clamped(std::size_t layer, int level) const;
  void load(std::size_t bucket);
  void load_all();
  Score evaluate() const;
  bool better(const Score& a, const Score& b, const Aim& aim) const;
  // Keeps the changes where they are an improvement.
  bool attempt(const std::vector<Change>& changes, const Aim& aim);
  void walk(const Aim& aim);
  bool improve_layers(const Aim& aim);
  bool improve_buckets(const Aim& aim);
  std::uint64_t random();

  const StepModel& model_;
  std::vector<std::vector<std::size_t>> members_;  // Of each bucket.
  std::vector<std::vector<std::size_t>> by_size_;  // Those of them that have levels, largest first.
  std::vector<std::size_t> free_;                  // Layers that have levels.
  int strongest_ = kDense;
  std::vector<int> levels_;
  std::vector<BucketCost> costs_;
  Score score_;
  std::vector<std::size_t> held_;
  std::vector<Change> undo_, changes_;
  std::vector<std::size_t> touched_;  // Buckets,
  std::vector<BucketCost> before_;    // what they cost before.
  std::int64_t left_ = std::numeric_limits<std::int64_t>::max();
  std::uint64_t random_ = 0;
};

}  // namespace accordion::perf
