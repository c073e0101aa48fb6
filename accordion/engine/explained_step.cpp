#include "accordion/engine/explained_step.h"

#include <algorithm>

namespace accordion {
namespace {

// Encoding is what a thread does between messages, but for the first, which another thread does ahead.
perf::Timeline timeline_of(const StepTrace& trace) {
  const auto at = [&](StepClock::time_point time) { return seconds_between(*trace.begin, time); };
  perf::Timeline timeline;
  for (const BucketTrace& bucket : trace.buckets) {
    perf::BucketTimeline& to = timeline.buckets.emplace_back();
    to.ready = at(bucket.ready);
    if (bucket.elsewhere) continue;
    const BucketTimes& times = bucket.times;
    to.first_encode = {at(times.prepare_begin), at(times.prepare_end)};
    for (const CollectiveTime& message : times.collectives)
      to.wire.push_back({at(message.begin), at(message.end)});
    for (std::size_t i = 0; i < to.wire.size(); ++i)
      to.decode.push_back({to.wire[i].end, i + 1 < to.wire.size() ? to.wire[i + 1].begin : at(times.end)});
    to.end = at(times.end);
  }
  timeline.backward = timeline.buckets.empty() ? 0 : timeline.buckets.back().ready;
  timeline.seconds = at(trace.end);
  return timeline;
}

std::vector<std::vector<Slice>> buckets_of(const StepTrace& trace) {
  std::vector<std::vector<Slice>> buckets;
  for (const BucketTrace& bucket : trace.buckets) buckets.push_back(bucket.slices);
  return buckets;
}

bool same_buckets(const StepTrace& a, const StepTrace& b) {
  const auto same_slice = [](const Slice& x, const Slice& y) {
    return x.tensor == y.tensor && x.count == y.count;
  };
  return std::ranges::equal(a.buckets, b.buckets, [&](const BucketTrace& x, const BucketTrace& y) {
    return std::ranges::equal(x.slices, y.slices, same_slice);
  });
}

}  // namespace

void RecentSteps::add(const StepTrace& trace, std::vector<int> levels) {
  if (!trace.begin || !trace.kept) return;
  if (!steps_.empty() && (steps_.back().second != levels || !same_buckets(steps_.back().first, trace)))
    steps_.clear();
  steps_.emplace_back(trace, std::move(levels));
  if (steps_.size() > kKept) steps_.pop_front();
}

std::optional<ExplainedStep> RecentSteps::explain(Communicator& ranks, const StepCosts* costs,
                                                  const Exchange& exchange) const {
  if (steps_.empty()) return std::nullopt;
  const auto& [last, levels] = steps_.back();
  const std::vector<std::vector<Slice>> buckets = buckets_of(last);
  std::vector<WatchedStep> watched;
  for (const auto& [trace, same] : steps_) watched.push_back(watched_step(trace, same));
  agree(ranks, watched);
  StepCosts own(exchange, ranks.size());
  own.learn(watched, buckets);
  const StepCosts& known = costs && costs->learned_with(buckets) ? *costs : own;
  std::vector<int> may = levels, places;
  for (const int tensor : known.tensors()) places.push_back(levels[static_cast<std::size_t>(tensor)]);
  perf::StepModel model = known.model(may);
  // A layer that its codec leaves dense has no levels to choose.
  for (std::size_t p = 0; p < places.size(); ++p)
    if (model.layers[p].levels.empty()) places[p] = kDense;
  // The step that is the median of those, so that no hiccup is explained.
  std::vector<std::pair<double, const StepTrace*>> order;
  for (const auto& [trace, same] : steps_)
    order.emplace_back(seconds_between(*trace.begin, trace.end), &trace);
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2), order.end());
  return ExplainedStep{timeline_of(*order[order.size() / 2].second), perf::simulate(model, places)};
}

}  // namespace accordion
