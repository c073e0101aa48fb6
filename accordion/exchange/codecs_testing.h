// What the tests over all codecs share: gradients to compress, and a run of several ranks to look at
// afterwards.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "accordion/comm/loopback.h"
#include "accordion/exchange/exchange.h"

namespace accordion::testing_codecs {

using Floats = std::vector<float>;

// Everything with two dimensions is compressed, however small: the point is the codecs.
inline const Routing kCompressAll{.published = true};

// Heavy-tailed, as gradients are.
inline Floats noise(std::size_t n, unsigned seed, float scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Floats values(n);
  for (float& value : values) value = scale * normal(generator) * std::exp(normal(generator));
  return values;
}

// One step: a level for each tensor, and the tensors of each bucket. A tensor in no bucket is left out.
struct Step {
  std::vector<int> levels;
  std::vector<std::vector<int>> buckets;
  std::vector<std::vector<Floats>> gradients;  // Per rank, per tensor.
};

struct Plan {
  std::vector<Shape> shapes = {};
  std::vector<std::string> codecs = {};  // Settings; levels are places in here.
  int ranks = 1, threads = 1;
  std::vector<Step> steps = {};
};

struct Outcome {
  bool kept = false;                           // What end_step() said.
  std::vector<std::vector<Floats>> means;      // Per rank, per tensor; empty where it was left out.
  std::vector<std::vector<Floats>> residuals;  // The same; empty where nothing is owed.
  Traffic traffic;                             // Of rank 0.
};

// One outcome a step.
inline std::vector<Outcome> run(const Plan& plan) {
  const auto ranks = static_cast<std::size_t>(plan.ranks);
  const std::size_t tensors = plan.shapes.size();
  std::vector<Outcome> outcomes(plan.steps.size());
  for (Outcome& outcome : outcomes) {
    outcome.means.assign(ranks, std::vector<Floats>(tensors));
    outcome.residuals = outcome.means;
  }
  ExchangeOptions options{.levels = {}, .routing = kCompressAll, .seed = 11};
  for (const std::string& setting : plan.codecs) options.levels.push_back(parse_codec(setting));
  options.threads = plan.threads;
  std::vector<TensorInfo> infos;
  for (const Shape& shape : plan.shapes) infos.push_back({"t" + std::to_string(infos.size()), shape});

  run_loopback(plan.ranks, [&](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    Exchange exchange(comm, infos, options);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      const Step& step = plan.steps[s];
      exchange.set_levels(step.levels);
      for (const std::vector<int>& members : step.buckets) {
        Floats bucket;
        std::vector<Slice> slices;
        for (const int t : members) {
          const Floats& gradient = step.gradients[rank][static_cast<std::size_t>(t)];
          slices.push_back({t, bucket.size(), gradient.size()});
          bucket.insert(bucket.end(), gradient.begin(), gradient.end());
        }
        exchange.mean(bucket, slices);
        for (const Slice& slice : slices) {
          const auto from = bucket.begin() + static_cast<std::ptrdiff_t>(slice.offset);
          outcomes[s].means[rank][static_cast<std::size_t>(slice.tensor)].assign(
              from, from + static_cast<std::ptrdiff_t>(slice.count));
        }
      }
      const bool kept = exchange.end_step();
      State state;
      exchange.save_state(StateWriter(state));
      for (std::size_t t = 0; t < tensors; ++t)
        outcomes[s].residuals[rank][t] = std::get<Floats>(state.at(infos[t].name + "/residual"));
      const Traffic traffic = exchange.take_epoch_stats().traffic;
      if (rank > 0) continue;
      outcomes[s].kept = kept;
      outcomes[s].traffic = traffic;
    }
  });
  return outcomes;
}

inline const std::vector<std::vector<std::int64_t>> kShapes = {
    {0, 4}, {1, 1}, {31, 1}, {1, 32}, {33, 1}, {7, 3}, {5, 2, 3, 3}, {64, 65}, {300, 7}, {7, 300}};

// All shapes in one bucket, so that layers share buffers and collectives.
struct EveryShape {
  std::vector<TensorInfo> tensors;
  std::vector<Slice> slices;
  std::size_t size = 0;

  EveryShape() {
    for (const auto& dims : kShapes) {
      const Shape shape{dims};
      slices.push_back({static_cast<int>(tensors.size()), size, shape.count()});
      size += shape.count();
      tensors.push_back({"tensor" + std::to_string(tensors.size()), shape});
    }
    tensors.push_back({"bias", {{17}}});  // Goes dense.
    slices.push_back({static_cast<int>(tensors.size()) - 1, size, 17});
    size += 17;
  }
};

}  // namespace accordion::testing_codecs
