#include "accordion/perf/step.h"

#include <cassert>

#include "accordion/perf/bucket.h"

namespace accordion::perf {
namespace {

void load_buckets(const StepModel& model, std::span<const int> levels, std::vector<BucketLoad>& loads) {
  assert(levels.size() == model.layers.size());
  loads.assign(model.ready.size(), {});
  for (std::size_t i = 0; i < levels.size(); ++i)
    loads[static_cast<std::size_t>(model.layers[i].bucket)].add(model.layers[i], levels[i]);
}

// The mover's intervals, one after the other.
class Walk {
 public:
  Walk(const Service& service, BucketTimeline& bucket)
      : service_(service), now_(service.move_begin()), bucket_(bucket) {}

  void encode(double seconds) { pass(seconds, bucket_.encode); }
  void call(const Cost& cost, const BucketLoad::Call& what) {
    if (what.bytes <= 0 && what.decode <= 0) return;
    pass(cost.seconds(what.bytes), bucket_.wire);
    pass(what.decode, bucket_.decode);
  }

 private:
  void pass(double seconds, std::vector<Interval>& intervals) {
    intervals.push_back({now_, service_.after(now_, seconds)});
    now_ = intervals.back().end;
  }

  const Service& service_;
  double now_;
  BucketTimeline& bucket_;
};

BucketTimeline timeline_of(const BucketLoad& load, const Service& service, const Link& link) {
  BucketTimeline bucket{.ready = service.ready(),
                        .first_encode = {service.encode_begin(), service.encode_end()},
                        .end = service.end()};
  Walk walk(service, bucket);
  walk.call(load.dense_cost(link), load.dense);
  for (std::size_t i = 0; i < load.used_rounds; ++i) {
    if (i > 0) walk.encode(load.rounds[i].encode);
    for (std::size_t kind = 0; kind < kCollectives; ++kind)
      walk.call(link.costs[kind], load.rounds[i].calls[kind]);
  }
  return bucket;
}

double seconds_after(double begin, const std::vector<Interval>& intervals) {
  double seconds = 0;
  for (const Interval& interval : intervals)
    seconds += std::max(0.0, interval.end - std::max(begin, interval.begin));
  return seconds;
}

}  // namespace

Timeline simulate(const StepModel& model, std::span<const int> levels) {
  std::vector<BucketLoad> loads;
  load_buckets(model, levels, loads);
  Timeline timeline;
  std::vector<BucketCost> costs;
  for (const BucketLoad& load : loads) costs.push_back(cost_of(load, model.link, model.ranks));
  Service service(model, backward_beside(costs, model));
  for (std::size_t b = 0; b < loads.size(); ++b) {
    service.serve(model.ready[b], costs[b]);
    timeline.buckets.push_back(timeline_of(loads[b], service, model.link));
    timeline.wire_bytes += costs[b].wire_bytes;
  }
  timeline.backward = service.backward_end();
  timeline.seconds = service.step_end() + model.rest;
  for (const BucketTimeline& bucket : timeline.buckets) {
    timeline.communication += seconds_after(timeline.backward, bucket.wire);
    timeline.decoding += seconds_after(timeline.backward, bucket.decode);
  }
  // All buckets are ready by then: what is left is encoding, in rounds or ahead of the first one.
  const double exposed = service.step_end() - timeline.backward;
  timeline.encoding = std::max(0.0, exposed - timeline.communication - timeline.decoding);
  return timeline;
}

double step_seconds(const StepModel& model, std::span<const int> levels) {
  thread_local std::vector<BucketLoad> loads;  // Both keep their memory between calls.
  thread_local std::vector<BucketCost> costs;
  load_buckets(model, levels, loads);
  costs.clear();
  for (const BucketLoad& load : loads) costs.push_back(cost_of(load, model.link, model.ranks));
  return step_seconds(model, costs);
}

}  // namespace accordion::perf
