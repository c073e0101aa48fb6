// What a step costs in its parts, learned from steps that were watched, and agreed between ranks: enough to foresee a step
// with other levels (perf/step.h).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/engine/step_trace.h"
#include "accordion/exchange/exchange.h"
#include "accordion/perf/step.h"

namespace accordion {

// What a round's pattern is to the model of a step.
perf::Collective collective_of(Pattern pattern);

// A step's levels and times; after agree(), of all ranks.
struct WatchedStep {
  struct Layer {
    int tensor, round;
    perf::Collective collective;
    double bytes, encode, decode;
  };
  struct Message {
    perf::Collective collective;
    double bytes, seconds;
  };
  struct Bucket {
    double ready, prepare;  // Since the end of the step before; how long.
    std::vector<Layer> layers;
    std::vector<Message> messages;
  };
  std::vector<int> levels;  // Per tensor; kDense.
  double seconds;
  std::vector<Bucket> buckets;
};

// Of a trace that has a begin.
WatchedStep watched_step(const StepTrace& trace, std::vector<int> levels);

// The largest over ranks of every time but those of messages, of which the smallest: the others' include waiting. Collective;
// all ranks have watched the same steps. The bytes that it sends.
std::size_t agree(Communicator& ranks, std::vector<WatchedStep>& steps);

class StepCosts {
 public:
  // Of steps of this exchange's tensors.
  StepCosts(const Exchange& exchange, int ranks);

  // From steps with the same buckets, after agree(), some of them all dense. What they say replaces what was known.
  void learn(std::span<const WatchedStep> steps, const std::vector<std::vector<Slice>>& buckets);

  // Whether they were learned from steps with these buckets.
  bool learned_with(const std::vector<std::vector<Slice>>& buckets) const;

  // Whether a tensor's cost at a level was watched, or can be told from others'.
  bool knows(std::size_t tensor, int level) const;

  // Layers in the order of tensors(), each with the levels up to what it may get.
  perf::StepModel model(std::span<const int> may) const;
  // Those that are in buckets.
  const std::vector<int>& tensors() const { return tensors_; }

 private:
  void learn_layers(std::span<const WatchedStep> steps);
  void learn_link(std::span<const WatchedStep> steps);
  void learn_stretch(std::span<const WatchedStep> steps);
  perf::LayerCost dense_cost(std::size_t place) const;
  std::optional<perf::LayerCost> cost(std::size_t place, int level) const;
  double share(std::size_t place) const;  // Of its bucket's values.

  std::vector<std::size_t> counts_;
  int ranks_;
  std::vector<int> tensors_, bucket_of_;  // By place.
  std::vector<double> bucket_values_, ready_, dense_prepare_, other_prepare_;
  double stretch_ = 0;
  perf::Link link_;
  std::map<std::pair<int, int>, perf::LayerCost>
      costs_;    // By tensor and level; no rounds: it goes dense at it.
  struct Rate {  // Of a level, per value.
    double values = 0;
    std::vector<perf::LayerRound> rounds;
  };
  std::map<int, Rate> rates_;
};

}  // namespace accordion
