// Steps for tests, drawn as machines and networks are: of a seed, so that a failing one can be named.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "accordion/perf/step.h"

namespace accordion::perf {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  double uniform(double low, double high) { return std::uniform_real_distribution<>(low, high)(engine_); }
  double log_uniform(double low, double high) { return std::exp(uniform(std::log(low), std::log(high))); }
  int integer(int low, int high) { return std::uniform_int_distribution<>(low, high)(engine_); }
  bool chance(double share) { return uniform(0, 1) < share; }

 private:
  std::mt19937_64 engine_;
};

struct DrawnSize {
  int layers, levels, buckets;
};

inline Link drawn_link(Draw& draw, int ranks) {
  const double latency = draw.log_uniform(1e-5, 3e-3), seconds_per_byte = 1 / draw.log_uniform(1e7, 1e10);
  const double share = static_cast<double>(ranks - 1) / ranks;
  Link link;
  link[Collective::kSum].small = {2 * latency, 2 * share * seconds_per_byte};
  link[Collective::kGather].small = {latency, (ranks - 1) * seconds_per_byte * draw.uniform(1, 1.5)};
  link[Collective::kScatter].small = {latency, seconds_per_byte * draw.uniform(1, 1.5)};
  if (draw.chance(0.2)) link.dense = {.small = {latency, share * seconds_per_byte}};
  if (draw.chance(0.3))
    for (Cost& cost : link.costs) {
      cost.large_from = draw.log_uniform(1e4, 1e6);
      cost.large = {cost.small.seconds * 2, cost.small.seconds_per_byte};
    }
  return link;
}

// A matrix of `elements`, at a level of 0, 1, .. of one of four kinds of codec; encoding takes `speed` seconds an element.
inline LayerCost drawn_cost(int kind, int level, double elements, double speed, int ranks) {
  const double root = std::sqrt(elements), strength = std::pow(2.0, level);
  switch (kind) {
    case 0: {  // Low rank: two sums.
      const double rank = std::max(1.0, 8 / strength), bytes = 4 * rank * root,
                   work = speed * elements * (1 + rank / 8);
      return {{{Collective::kSum, bytes, work, work / 20}, {Collective::kSum, bytes, work / 2, work}}};
    }
    case 1: {  // Sparse: gathered entries.
      const double entries = elements * 0.05 / strength;
      return {{{Collective::kGather, 16 + 8 * entries, 3 * speed * elements,
                speed * (elements / 4 + 2 * ranks * entries)}}};
    }
    case 2: {  // Few bits an element: pieces to their owners, and gathered.
      const double bytes = 16 + elements / 2 / strength;
      return {{{Collective::kScatter, bytes * (ranks - 1) / ranks, speed * elements, speed * elements},
               {Collective::kGather, bytes / ranks, speed * elements / ranks, speed * elements}}};
    }
    default:  // 16 bits.
      return {{{Collective::kSum, 2 * elements / strength, speed * elements / 2, speed * elements / 2}}};
  }
}

inline StepModel drawn_step(std::uint64_t seed, const DrawnSize& size) {
  Draw draw(seed);
  StepModel model{.ranks = draw.integer(2, 16)};
  model.link = drawn_link(draw, model.ranks);
  model.backward = draw.log_uniform(0.005, 0.5);
  for (int b = 0; b < size.buckets; ++b) model.ready.push_back(model.backward * draw.uniform(0.2, 1));
  std::sort(model.ready.begin(), model.ready.end());
  if (draw.chance(0.5)) model.ready.back() = model.backward;
  model.rest = draw.chance(0.5) ? 0 : draw.uniform(0, 0.02);
  model.stretch = draw.chance(0.3) ? 0 : draw.uniform(0, 1);
  const double speed = draw.log_uniform(1e-10, 1e-8), largest = draw.log_uniform(1e4, 1e7);
  const bool mixed = draw.chance(0.3);
  const int kind = draw.integer(0, 3);
  for (int i = 0; i < size.layers; ++i) {
    const double elements = largest * draw.log_uniform(0.003, 1);
    LayerModel layer{.bucket = i * size.buckets / size.layers};
    layer.dense = {{{Collective::kSum, 4 * elements, speed * elements / 10, 0}}};
    const int levels = draw.chance(0.8) ? size.levels : draw.integer(0, size.levels);
    const int own = mixed ? draw.integer(0, 3) : kind;
    for (int l = 0; l < levels; ++l)
      layer.levels.push_back(drawn_cost(own, l, elements, speed * draw.uniform(0.8, 1.2), model.ranks));
    model.layers.push_back(layer);
  }
  model.delay = draw.chance(0.5) ? 0 : draw.log_uniform(1e-11, 1e-8);
  model.crowding = draw.chance(0.5) ? 1 : draw.uniform(1, 4);
  return model;
}

inline std::vector<int> drawn_levels(std::uint64_t seed, const StepModel& model) {
  Draw draw(seed);
  std::vector<int> levels;
  for (const LayerModel& layer : model.layers)
    levels.push_back(draw.integer(kDense, static_cast<int>(layer.levels.size()) - 1));
  return levels;
}

}  // namespace accordion::perf
