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
  Walk(double begin, BucketTimeline& bucket) : now_(begin), bucket_(bucket) {}

  void encode(double seconds) { pass(seconds, bucket_.encode); }
  void call(const Cost& cost, const BucketLoad::Call& what) {
    if (what.bytes <= 0 && what.decode <= 0) return;
    pass(cost.seconds(what.bytes), bucket_.wire);
    pass(what.decode, bucket_.decode);
  }

 private:
  void pass(double seconds, std::vector<Interval>& intervals) {
    intervals.push_back({now_, now_ + seconds});
    now_ += seconds;
  }

  double now_;

  BucketTimeline& bucket_;
};

BucketTimeline timeline_of(const BucketLoad& load, const Service& service, const Link& link) {
  BucketTimeline bucket{.ready = service.ready(),
                        .first_encode = {service.encode_begin(), service.encode_end()},
                        .end = service.end()};
  Walk walk(service.move_begin(), bucket);
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
  Service service(model);
  for (std::size_t b = 0; b < loads.size(); ++b) {
    const BucketCost cost = cost_of(loads[b], model.link, model.ranks);
    service.serve(model.ready[b], cost);
    timeline.buckets.push_back(timeline_of(loads[b], service, model.link));
    timeline.wire_bytes += cost.wire_bytes;
  }
  timeline.backward = service.backward_end(model.backward);
  timeline.seconds = service.step_end(model.backward) + model.rest;
  for (const BucketTimeline& bucket : timeline.buckets) {
    timeline.communication += seconds_after(timeline.backward, bucket.wire);
    timeline.decoding += seconds_after(timeline.backward, bucket.decode);
  }
  // All buckets are ready by then: what is left is encoding, in rounds or ahead of the first one.
  const double exposed = service.step_end(model.backward) - timeline.backward;
  timeline.encoding = std::max(0.0, exposed - timeline.communication - timeline.decoding);
  return timeline;
}

double step_seconds(const StepModel& model, std::span<const int> levels) {
  thread_local std::vector<BucketLoad> loads;  // Keeps its memory between calls.
  load_buckets(model, levels, loads);
  Service service(model);
  for (std::size_t b = 0; b < loads.size(); ++b)
    service.serve(model.ready[b], cost_of(loads[b], model.link, model.ranks));
  return service.step_end(model.backward) + model.rest;
}

}  // namespace accordion::perf
