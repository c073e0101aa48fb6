#include "accordion/engine/step_costs.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "accordion/base/median.h"
#include "accordion/exchange/layer.h"

namespace accordion {
namespace {

// Seconds of a level that is not to be chosen.
constexpr double kNever = 1e6;

bool is_dense(const WatchedStep& step) {
  return std::all_of(step.levels.begin(), step.levels.end(), [](int level) { return level == kDense; });
}

double median(std::vector<double> values) {
  return median_of(std::move(values)).value;
}

// Processor seconds of a bucket.
double work_of(const WatchedStep::Bucket& bucket) {
  double work = bucket.prepare;
  for (const WatchedStep::Layer& layer : bucket.layers)
    work += (layer.round > 0 ? layer.encode : 0) + layer.decode;
  return work;
}

double work_before_last(const WatchedStep& step) {
  double work = 0;
  for (std::size_t b = 0; b + 1 < step.buckets.size(); ++b) work += work_of(step.buckets[b]);
  return work;
}

// Median over some of the steps.
template <class Of>
double median_over(std::span<const WatchedStep> steps, bool dense, Of of) {
  std::vector<double> values;
  for (const WatchedStep& step : steps)
    if (is_dense(step) == dense) values.push_back(of(step));
  return median(std::move(values));
}

}  // namespace

perf::Collective collective_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::kGather:
      return perf::Collective::kGather;
    case Pattern::kScatter:
      return perf::Collective::kScatter;
    default:
      return perf::Collective::kSum;
  }
}

WatchedStep watched_step(const StepTrace& trace, std::vector<int> levels) {
  WatchedStep step{std::move(levels), seconds_between(*trace.begin, trace.end), {}};
  for (const BucketTrace& bucket : trace.buckets) {
    WatchedStep::Bucket& to = step.buckets.emplace_back(WatchedStep::Bucket{
        seconds_between(*trace.begin, bucket.ready), bucket.elsewhere ? 0 : bucket.times.prepare(), {}, {}});
    for (const LayerTime& layer : bucket.times.layers)
      to.layers.push_back({layer.tensor, layer.round, collective_of(layer.pattern),
                           static_cast<double>(layer.bytes), layer.encode, layer.decode});
    for (const CollectiveTime& message : bucket.times.collectives)
      to.messages.push_back(
          {collective_of(message.pattern), static_cast<double>(message.bytes), message.seconds()});
  }
  return step;
}

std::size_t agree(Communicator& ranks, std::vector<WatchedStep>& steps) {
  std::vector<double*> most, least;
  for (WatchedStep& step : steps) {
    most.push_back(&step.seconds);
    for (WatchedStep::Bucket& bucket : step.buckets) {
      most.insert(most.end(), {&bucket.ready, &bucket.prepare});
      for (WatchedStep::Layer& layer : bucket.layers)
        most.insert(most.end(), {&layer.bytes, &layer.encode, &layer.decode});
      for (WatchedStep::Message& message : bucket.messages) {
        most.push_back(&message.bytes);
        least.push_back(&message.seconds);
      }
    }
  }
  std::vector<double> values;
  for (const double* value : most) values.push_back(*value);
  for (const double* value : least) values.push_back(-*value);
  if (!values.empty()) ranks.max(std::span(values));
  std::size_t at = 0;
  for (double* value : most) *value = values[at++];
  for (double* value : least) *value = -values[at++];
  return values.size() * sizeof values[0];
}

StepCosts::StepCosts(const Exchange& exchange, int ranks) : ranks_(ranks) {
  for (std::size_t i = 0; i < exchange.tensors(); ++i) counts_.push_back(exchange.tensor(i).shape.count());
}

void StepCosts::learn(std::span<const WatchedStep> steps, const std::vector<std::vector<Slice>>& buckets) {
  tensors_.clear();
  bucket_of_.clear();
  bucket_values_.assign(buckets.size(), 0);
  for (std::size_t b = 0; b < buckets.size(); ++b)
    for (const Slice& slice : buckets[b]) {
      tensors_.push_back(slice.tensor);
      bucket_of_.push_back(static_cast<int>(b));
      bucket_values_[b] += static_cast<double>(slice.count);
    }
  // Where all steps are alike, backward is as they have it.
  const bool dense = std::any_of(steps.begin(), steps.end(), is_dense);
  ready_.clear();
  dense_prepare_.clear();
  other_prepare_.clear();
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    ready_.push_back(
        median_over(steps, dense, [&](const WatchedStep& step) { return step.buckets[b].ready; }));
    dense_prepare_.push_back(
        median_over(steps, true, [&](const WatchedStep& step) { return step.buckets[b].prepare; }));
    // What is not the codecs': gradients are watched and weighed, dense ones copied.
    other_prepare_.push_back(median_over(steps, false, [&](const WatchedStep& step) {
      double rest = step.buckets[b].prepare;
      for (const WatchedStep::Layer& layer : step.buckets[b].layers)
        if (layer.round == 0) rest -= layer.encode;
      return std::max(0.0, rest);
    }));
    if (b > 0) ready_[b] = std::max(ready_[b], ready_[b - 1]);
  }
  learn_layers(steps);
  learn_link(steps);
  learn_stretch(steps);
}

void StepCosts::learn_layers(std::span<const WatchedStep> steps) {
  std::map<std::tuple<int, int, int>, std::vector<WatchedStep::Layer>> found;
  std::map<std::pair<int, int>, perf::LayerCost> costs;
  for (const WatchedStep& step : steps) {
    if (is_dense(step)) continue;
    for (const int tensor : tensors_)
      if (const int level = step.levels[static_cast<std::size_t>(tensor)]; level != kDense)
        costs[{tensor, level}] = {};
    for (const WatchedStep::Bucket& bucket : step.buckets)
      for (const WatchedStep::Layer& layer : bucket.layers)
        found[{layer.tensor, step.levels[static_cast<std::size_t>(layer.tensor)], layer.round}].push_back(
            layer);
  }
  for (const auto& [key, layers] : found) {
    const auto& [tensor, level, round] = key;
    const auto middle = [&layers = layers](double WatchedStep::Layer::*of) {  // clang 14 wants it by name.
      std::vector<double> values;
      for (const WatchedStep::Layer& layer : layers) values.push_back(layer.*of);
      return median(std::move(values));
    };
    costs[{tensor, level}].rounds.push_back({layers[0].collective, middle(&WatchedStep::Layer::bytes),
                                             middle(&WatchedStep::Layer::encode),
                                             middle(&WatchedStep::Layer::decode)});
  }
  for (const auto& [key, cost] : costs) {
    costs_[key] = cost;
    if (cost.rounds.empty()) continue;
    Rate& rate = rates_[key.second];
    rate = {};
  }
  for (const auto& [key, cost] : costs_) {
    if (cost.rounds.empty()) continue;
    Rate& rate = rates_[key.second];
    rate.values += static_cast<double>(counts_[static_cast<std::size_t>(key.first)]);
    rate.rounds.resize(std::max(rate.rounds.size(), cost.rounds.size()));
    for (std::size_t i = 0; i < cost.rounds.size(); ++i) {
      rate.rounds[i].collective = cost.rounds[i].collective;
      rate.rounds[i].bytes += cost.rounds[i].bytes;
      rate.rounds[i].encode += cost.rounds[i].encode;
      rate.rounds[i].decode += cost.rounds[i].decode;
    }
  }
}

void StepCosts::learn_link(std::span<const WatchedStep> steps) {
  std::map<std::pair<perf::Collective, double>, std::vector<double>> times;
  for (const WatchedStep& step : steps)
    for (const WatchedStep::Bucket& bucket : step.buckets)
      for (const WatchedStep::Message& message : bucket.messages)
        times[{message.collective, message.bytes}].push_back(message.seconds);
  std::array<std::vector<perf::Sample>, perf::kCollectives> samples;
  for (const auto& [what, seconds] : times)
    samples[static_cast<std::size_t>(what.first)].push_back({what.second, median(seconds)});
  for (std::size_t kind = 0; kind < perf::kCollectives; ++kind)
    if (!samples[kind].empty()) link_.costs[kind] = perf::fit_cost(samples[kind]).cost;
}

// The last bucket comes later in steps whose exchange works more beside backward.
void StepCosts::learn_stretch(std::span<const WatchedStep> steps) {
  const auto end_of_backward = [](const WatchedStep& step) { return step.buckets.back().ready; };
  stretch_ = 0;
  if (ready_.size() < 2 || std::none_of(steps.begin(), steps.end(), is_dense)) return;
  const double ready = median_over(steps, true, end_of_backward),
               work = median_over(steps, true, work_before_last);
  std::map<std::vector<int>, std::vector<WatchedStep>> kinds;
  for (const WatchedStep& step : steps)
    if (!is_dense(step)) kinds[step.levels].push_back(step);
  double products = 0, squares = 0;
  for (const auto& [levels, alike] : kinds) {
    const double later = median_over(alike, false, end_of_backward) - ready;
    const double more = median_over(alike, false, work_before_last) - work;
    products += later * more;
    squares += more * more;
  }
  if (squares > 0) stretch_ = std::clamp(products / squares, 0.0, 1.0);
  double before = 0;
  for (std::size_t b = 0; b < ready_.size(); ++b) {
    ready_[b] = std::max(b > 0 ? ready_[b - 1] : 0.0, ready_[b] - stretch_ * before);
    before += dense_prepare_[b];
  }
}

double StepCosts::share(std::size_t place) const {
  const double values = bucket_values_[static_cast<std::size_t>(bucket_of_[place])];
  return values > 0 ? static_cast<double>(counts_[static_cast<std::size_t>(tensors_[place])]) / values : 0;
}

bool StepCosts::learned_with(const std::vector<std::vector<Slice>>& buckets) const {
  std::vector<int> tensors, bucket_of;
  for (std::size_t b = 0; b < buckets.size(); ++b)
    for (const Slice& slice : buckets[b]) {
      tensors.push_back(slice.tensor);
      bucket_of.push_back(static_cast<int>(b));
    }
  return !tensors.empty() && tensors == tensors_ && bucket_of == bucket_of_;
}

bool StepCosts::knows(std::size_t tensor, int level) const {
  return level == kDense || costs_.contains({static_cast<int>(tensor), level}) || rates_.contains(level);
}

perf::LayerCost StepCosts::dense_cost(std::size_t place) const {
  const auto bucket = static_cast<std::size_t>(bucket_of_[place]);
  const double bytes =
      static_cast<double>(counts_[static_cast<std::size_t>(tensors_[place])]) * sizeof(float);
  return {{{perf::Collective::kSum, bytes, dense_prepare_[bucket] * share(place), 0}}};
}

// What was not watched is told from the other tensors at the level, in proportion. Nothing: it cannot be told.
std::optional<perf::LayerCost> StepCosts::cost(std::size_t place, int level) const {
  const int tensor = tensors_[place];
  perf::LayerCost cost;
  if (const auto found = costs_.find({tensor, level}); found != costs_.end()) {
    if (found->second.rounds.empty()) return cost;
    cost = found->second;
  } else if (const auto rate = rates_.find(level); rate != rates_.end()) {
    cost.rounds = rate->second.rounds;
    const double part = static_cast<double>(counts_[static_cast<std::size_t>(tensor)]) / rate->second.values;
    for (perf::LayerRound& round : cost.rounds) {
      round.bytes *= part;
      round.encode *= part;
      round.decode *= part;
    }
  } else {
    return std::nullopt;
  }
  cost.rounds[0].encode += other_prepare_[static_cast<std::size_t>(bucket_of_[place])] * share(place);
  return cost;
}

perf::StepModel StepCosts::model(std::span<const int> may) const {
  perf::StepModel model{.ranks = ranks_,
                        .ready = ready_,
                        .backward = ready_.empty() ? 0 : ready_.back(),
                        .stretch = stretch_,
                        .link = link_,
                        .layers = {}};
  for (std::size_t place = 0; place < tensors_.size(); ++place) {
    perf::LayerModel& layer =
        model.layers.emplace_back(perf::LayerModel{bucket_of_[place], dense_cost(place), {}});
    const int most = may[static_cast<std::size_t>(tensors_[place])];
    bool compresses = false;
    for (int level = 0; level <= most; ++level) {
      const std::optional<perf::LayerCost> known = cost(place, level);
      compresses = compresses || (known && !known->rounds.empty());
      layer.levels.push_back(known.value_or(perf::LayerCost{{{perf::Collective::kSum, 0, kNever, 0}}}));
    }
    // A layer that goes dense at all of them has nothing to choose.
    if (!compresses) layer.levels.clear();
  }
  return model;
}

}  // namespace accordion
