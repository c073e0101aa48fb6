#include "accordion/perf/bucket.h"

#include <cassert>

namespace accordion::perf {

void BucketLoad::add(const LayerModel& layer, int level) {
  const std::vector<LayerRound>& parts = layer.at(level).rounds;
  assert(parts.size() <= kMostRounds);
  if (layer.goes_dense(level)) {
    for (const LayerRound& part : parts) {
      rounds[0].encode += part.encode;
      dense.bytes += part.bytes;
      dense.decode += part.decode;
    }
    return;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    rounds[i].encode += parts[i].encode;
    Call& call = rounds[i].calls[static_cast<std::size_t>(parts[i].collective)];
    call.bytes += parts[i].bytes;
    call.decode += parts[i].decode;
  }
  used_rounds = std::max(used_rounds, parts.size());
}

BucketCost cost_of(const BucketLoad& load, const Link& link, int ranks) {
  double wire = 0;
  BucketCost cost{.first_encode = load.rounds[0].encode};
  const auto call = [&](Collective collective, const Cost& seconds, const BucketLoad::Call& what) {
    wire += seconds.seconds(what.bytes);
    cost.wire_bytes += wire_bytes(collective, what.bytes, ranks);
    cost.processor += what.decode;
  };
  call(Collective::kSum, load.dense_cost(link), load.dense);
  for (std::size_t i = 0; i < load.used_rounds; ++i) {
    if (i > 0) cost.processor += load.rounds[i].encode;
    for (std::size_t kind = 0; kind < kCollectives; ++kind)
      call(static_cast<Collective>(kind), link.costs[kind], load.rounds[i].calls[kind]);
  }
  cost.moving = wire + cost.processor;
  cost.processor += cost.first_encode;
  return cost;
}

double backward_beside(std::span<const BucketCost> costs, const StepModel& model) {
  double end = model.backward;
  for (std::size_t b = 0; b + 1 < costs.size(); ++b) end += later_by(costs[b], model);
  return end;
}

double step_seconds(const StepModel& model, std::span<const BucketCost> costs) {
  Service service(model, backward_beside(costs, model));
  for (std::size_t b = 0; b < costs.size(); ++b) service.serve(model.ready[b], costs[b]);
  return service.step_end() + model.rest;
}

}  // namespace accordion::perf
