// The timeline of a step, simulated: what each layer costs at the level it gets, buckets that become ready while
// backward goes on, and one network. Everything is in seconds since the end of the step before, as the engine's
// threads would live it (engine/communication_thread.h):
//
// - Buckets are served in order; all collectives of one come before those of the next.
// - Only the first encoding of the next bucket runs ahead, under the wire time of the one before, and no further ahead.
// - Ready times and the end of backward move by `stretch` for each processor second that the buckets before them cost, and by
//   `delay` for each byte that a rank sends for these: messages take the processor, too, while they wait for the network.
//   (All of these seconds and bytes, whether or not they are over by then. Where they are not, communication is behind, and ready
//   times are not what the step waits for. So a faster link or codec never makes a step longer.)
// - Until backward has ended, encoding, messages and decoding take `crowding` times as long: where ranks have no core to spare,
//   a message waits for the processor at both of its ends.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "accordion/perf/link.h"

namespace accordion::perf {

inline constexpr std::size_t kMostRounds = 4;

// A level that sends the gradient as it is.
inline constexpr int kDense = -1;

// One layer in one round of messages.
struct LayerRound {
  Collective collective = Collective::kSum;
  double bytes = 0;
  double encode = 0, decode = 0;  // Processor seconds; decoding with as many messages as there are.
};

// One layer at one level.
struct LayerCost {
  // At most kMostRounds. A dense layer has one, a sum; a level that has none leaves the layer dense.
  std::vector<LayerRound> rounds;
};

struct LayerModel {
  int bucket = 0;
  LayerCost dense = {};
  std::vector<LayerCost> levels = {};  // Those it may get, mildest first.

  bool goes_dense(int level) const {
    return level == kDense || levels[static_cast<std::size_t>(level)].rounds.empty();
  }
  const LayerCost& at(int level) const {
    return goes_dense(level) ? dense : levels[static_cast<std::size_t>(level)];
  }
};

struct StepModel {
  int ranks = 1;
  std::vector<double> ready = {};  // Per bucket, in the order in which they are served; does not fall.
  double backward = 0;             // Its end; no earlier than the last bucket.
  double rest = 0;     // After the last bucket: optimizer, data, where these do not come before `ready`.
  double stretch = 0;  // How much later backward is for each processor second that the exchange takes: gamma.
  double delay = 0;    // And for each byte that a rank sends meanwhile.
  double crowding = 1;  // How many times as long the exchange takes while backward runs.
  Link link = {};
  std::vector<LayerModel> layers = {};
};

struct Interval {
  double begin = 0, end = 0;
};

// Of one bucket.
struct BucketTimeline {
  double ready = 0;
  Interval first_encode = {};
  std::vector<Interval> encode = {}, wire = {},
                        decode = {};  // One a collective; encode: of the later rounds.
  double end = 0;
};

struct Timeline {
  std::vector<BucketTimeline> buckets;
  double backward = 0;  // Its end, stretched.
  double seconds = 0;   // The step.
  // What the step is after backward has ended, in parts: these three and `rest` add up to seconds - backward.
  double encoding = 0, communication = 0, decoding = 0;
  double wire_bytes = 0;  // Sent by one rank.
};

// Layers that go dense share one sum a bucket; others share one call a round and kind of collective.
Timeline simulate(const StepModel& model, std::span<const int> levels);

// The same, the step's seconds alone: for searches.
double step_seconds(const StepModel& model, std::span<const int> levels);

}  // namespace accordion::perf
