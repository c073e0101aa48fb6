#include "accordion/exchange/exchange.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/base/hash.h"
#include "accordion/kernels/dense.h"

namespace accordion {

ExchangeOptions as_published(ExchangeOptions options) {
  if (!options.published) return options;
  options.routing.published = true;
  for (CodecOptions& level : options.levels) level = as_published(level);
  return options;
}

std::vector<Layer> Exchange::make_layers(std::vector<TensorInfo> tensors, bool published) {
  std::vector<Layer> layers;
  for (TensorInfo& tensor : tensors) layers.emplace_back(std::move(tensor), published);
  return layers;
}

Exchange::Exchange(Communicator& gradients, std::vector<TensorInfo> tensors, ExchangeOptions options)
    : gradients_(gradients),
      options_(as_published(std::move(options))),
      layers_(make_layers(std::move(tensors), options_.published)),
      watch_(options_.track, layers_),
      tensor_bytes_(layers_.size()),
      under_way_{UnderWay{.rounds = {gradients_, layers_, options_.threads}},
                 UnderWay{.rounds = {gradients_, layers_, options_.threads}}} {
  for (const CodecOptions& level : options_.levels)
    owes_ = owes_ || !std::holds_alternative<NoneOptions>(level);
  set_levels(std::vector<int>(layers_.size(), 0));
}

// They come from rank 0, from a record that is replayed, or from a state.
void Exchange::require_valid(std::span<const int> levels) const {
  if (levels.size() != layers_.size())
    throw Error("levels for " + std::to_string(levels.size()) + " tensors, expected for " +
                std::to_string(layers_.size()));
  const int most = static_cast<int>(options_.levels.size()) - 1;
  for (std::size_t i = 0; i < levels.size(); ++i)
    if (levels[i] < kDense || levels[i] > most)
      throw Error("level " + std::to_string(levels[i]) + " for " + layers_[i].info().name + ", expected " +
                  std::to_string(kDense) + " (dense) to " + std::to_string(most));
}

void Exchange::set_levels(std::span<const int> levels) {
  require_valid(levels);
  compresses_ = false;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const CodecOptions codec = levels[i] == kDense ? CodecOptions(NoneOptions{})
                                                   : options_.levels.at(static_cast<std::size_t>(levels[i]));
    if (levels[i] != layers_[i].level() || step_ == 0)
      layers_[i].set_level(levels[i], codec, gradients_.rank(), gradients_.size(), options_.routing);
    compresses_ = compresses_ || layers_[i].compresses();
  }
  require_same_levels();
}

void Exchange::set_plain(bool plain) {
  plain_ = plain;
  compresses_ = false;
  for (Layer& layer : layers_) {
    layer.set_plain(plain);
    compresses_ = compresses_ || layer.compresses();
  }
}

// Message sizes and shared draws follow from these: ranks that differ would deadlock, or add what does not
// belong together.
void Exchange::require_same_levels() {
  Hash hash;
  hash.add(options_.seed).add(static_cast<std::uint64_t>(options_.published));
  for (const CodecOptions& level : options_.levels) hash.add(codec_text(level));
  for (const Layer& layer : layers_) {
    hash.add(layer.info().name)
        .add(static_cast<std::uint64_t>(layer.level()))
        .add(static_cast<std::uint64_t>(layer.compresses()));
    for (std::int64_t dim : layer.info().shape.dims) hash.add(static_cast<std::uint64_t>(dim));
  }
  std::uint64_t bounds[] = {hash.value(), ~hash.value()};
  gradients_.max(std::span<std::uint64_t>(bounds));
  stats_.traffic.control_bytes += sizeof bounds;
  if (bounds[0] != ~bounds[1])
    throw Error(
        "rank " + std::to_string(gradients_.rank()) +
        ": the ranks differ in seed, codec settings, tensors or levels, and must not exchange gradients");
}

// Whose gradients are watched: this rank's own, before anything is done to them, or what all ranks decoded.
template <class T>
void Exchange::watch(std::span<T> bucket, std::span<const Slice> slices, bool aggregated) {
  const Tracking& track = watch_.tracking();
  if (!track.norms || track.aggregated != aggregated || (!aggregated && weight_ == 0)) return;
  for (const Slice& slice : slices) {
    const std::span<T> gradient = bucket.subspan(slice.offset, slice.count);
    // Where training goes on after a step that is not finite, its norms must not be lost to it.
    if (options_.watch_dense && !std::isfinite(sum_of_squares(gradient))) continue;
    watch_.add(slice.tensor, gradient);
  }
}

std::vector<Slice> Exchange::used_by_any(std::span<const Slice> slices, std::span<const char> used) {
  std::vector<std::int8_t> flags(used.begin(), used.end());
  gradients_.max(std::span(flags));
  stats_.traffic.control_bytes += flags.size();
  std::vector<Slice> kept;
  for (std::size_t i = 0; i < slices.size(); ++i)
    if (flags[i]) kept.push_back(slices[i]);
  return kept;
}

std::span<float> Exchange::UnderWay::floats() {
  if (const auto* floats = std::get_if<std::span<float>>(&bucket.values)) return *floats;
  return std::span(wide).first(count_of(bucket.values));
}

void Exchange::prepare(const GradientBucket& bucket) {
  UnderWay& under_way = under_way_[prepared_++ % under_way_.size()];
  under_way.times = {.prepare_begin = StepClock::now()};
  under_way.bucket = bucket;
  if (const auto* doubles = std::get_if<std::span<double>>(&bucket.values)) {
    if (scale_ != 1) accordion::scale(*doubles, 1 / scale_);
    watch(*doubles, bucket.slices, false);
    accordion::scale(*doubles, weight_ / gradients_.size());
  } else {
    prepare_floats(under_way);
  }
  under_way.times.prepare_end = StepClock::now();
}

void Exchange::prepare_floats(UnderWay& under_way) {
  const auto& [values, slices] = under_way.bucket;
  under_way.sixteen_bits_sent =
      has_sixteen_bits(values) && std::none_of(slices.begin(), slices.end(), [&](const Slice& slice) {
        return layers_[static_cast<std::size_t>(slice.tensor)].compresses();
      });
  if (has_sixteen_bits(values)) {
    if (under_way.wide.size() < count_of(values)) under_way.wide.resize(count_of(values));
    widen(values, under_way.floats());
  }
  const std::span<float> floats = under_way.floats();
  if (scale_ != 1) kernels::scale(floats, static_cast<float>(1 / scale_));
  watch(floats, slices, false);
  if (weight_ != 1) kernels::scale(floats, static_cast<float>(weight_));
  if (under_way.sixteen_bits_sent) return prepare_sixteen_bits(under_way);
  under_way.rounds.prepare(floats, slices,
                           {.seed = options_.seed,
                            .step = step_,
                            .epoch = epoch_,
                            .rank = gradients_.rank(),
                            .world = gradients_.size()});
}

// They travel with their scale, which is there to keep them within 16 bits.
void Exchange::prepare_sixteen_bits(UnderWay& under_way) {
  const std::span<float> floats = under_way.floats();
  for (const Slice& slice : under_way.bucket.slices)
    layers_[static_cast<std::size_t>(slice.tensor)].flush_into(floats.subspan(slice.offset, slice.count));
  if (scale_ != 1) kernels::scale(floats, static_cast<float>(scale_));
  const kernels::Narrowed narrowed =
      narrow(floats, static_cast<float>(gradients_.size()), under_way.bucket.values);
  under_way.saturated = narrowed.saturated;
  if (!narrowed.finite) fill(under_way.bucket.values, std::numeric_limits<double>::quiet_NaN());
}

BucketTimes Exchange::run() {
  UnderWay& under_way = under_way_[run_++ % under_way_.size()];
  if (const auto* doubles = std::get_if<std::span<double>>(&under_way.bucket.values)) {
    sum_doubles(under_way);
    watch(*doubles, under_way.bucket.slices, true);
    if (scale_ != 1) accordion::scale(*doubles, scale_);
  } else if (under_way.sixteen_bits_sent) {
    sum_sixteen_bits(under_way);
  } else {
    run_floats(under_way);
  }
  under_way.times.end = StepClock::now();
  return std::move(under_way.times);
}

void Exchange::run_floats(UnderWay& under_way) {
  const std::span<float> floats = under_way.floats();
  BucketCounts counts = under_way.rounds.run(watches_dense());
  under_way.times.layers = std::move(counts.times.layers);
  under_way.times.collectives = std::move(counts.times.collectives);
  watch(floats, under_way.bucket.slices, true);
  if (scale_ != 1) kernels::scale(floats, static_cast<float>(scale_));
  if (has_sixteen_bits(under_way.bucket.values))
    counts.saturated += narrow(floats, 1, under_way.bucket.values).saturated;
  count(counts);
}

// Dense, of a kind that is never compressed.
template <class T>
BucketCounts Exchange::sum(std::span<T> values, std::span<const Slice> slices) {
  BucketCounts counts;
  const auto begin = StepClock::now();
  gradients_.sum(values);
  counts.times.collectives.push_back({Pattern::kSum, values.size_bytes(), begin, StepClock::now()});
  counts.tally.sum(values.size_bytes(), values.size());
  for (const Slice& slice : slices) counts.tensors.push_back({slice.tensor, slice.count * sizeof(T)});
  return counts;
}

void Exchange::sum_sixteen_bits(UnderWay& under_way) {
  const Values& values = under_way.bucket.values;
  BucketCounts counts;
  if (const auto* halves = std::get_if<std::span<Half>>(&values))
    counts = sum(*halves, under_way.bucket.slices);
  else
    counts = sum(std::get<std::span<Bfloat16>>(values), under_way.bucket.slices);
  under_way.times.collectives = std::move(counts.times.collectives);
  counts.saturated = under_way.saturated;
  if (watches_dense()) counts.finite = std::isfinite(sum_of_squares(values));
  count(counts);
  if (!watch_.tracking().aggregated) return;
  const std::span<float> floats = under_way.floats();
  widen(values, floats);
  if (scale_ != 1) kernels::scale(floats, static_cast<float>(1 / scale_));
  watch(floats, under_way.bucket.slices, true);
}

void Exchange::mean(std::span<float> bucket, std::span<const Slice> slices) {
  prepare({bucket, slices});
  run();
}

void Exchange::mean(std::span<double> bucket, std::span<const Slice> slices) {
  prepare({bucket, slices});
  run();
}

void Exchange::sum_doubles(UnderWay& under_way) {
  const auto values = std::get<std::span<double>>(under_way.bucket.values);
  BucketCounts counts = sum(values, under_way.bucket.slices);
  under_way.times.collectives = std::move(counts.times.collectives);
  if (watches_dense())
    counts.finite =
        std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  count(counts);
}

void Exchange::count_elsewhere(std::size_t bytes, std::span<const Slice> slices, bool finite) {
  BucketCounts counts{.finite = finite};
  std::size_t values = 0;
  for (const Slice& slice : slices) values += slice.count;
  counts.tally.sum(bytes, values);
  // Their values are all of one width.
  for (const Slice& slice : slices)
    counts.tensors.push_back({slice.tensor, values ? bytes / values * slice.count : 0});
  count(counts);
}

void Exchange::count(const BucketCounts& counts) {
  tally_ += counts.tally;
  for (const TensorBytes& sent : counts.tensors)
    tensor_bytes_[static_cast<std::size_t>(sent.tensor)] += static_cast<std::int64_t>(sent.payload_bytes);
  stats_.traffic.entries += counts.entries;
  stats_.traffic.saturated += counts.saturated;
  stats_.traffic.control_bytes += counts.control_bytes;
  finite_ = finite_ && counts.finite;
}

bool Exchange::end_step() {
  if (compresses_) {  // Dense sums carry what is not finite to every rank by themselves.
    std::int32_t spoilt = finite_ ? 0 : 1;
    gradients_.max(std::span(&spoilt, 1));
    stats_.traffic.control_bytes += sizeof spoilt;
    finite_ = spoilt == 0;
  }
  for (Layer& layer : layers_) layer.commit(finite_);
  watch_.end_step();
  ++stats_.steps;
  ++step_;
  stats_.dropped_steps += !finite_;
  return std::exchange(finite_, true);
}

void Exchange::abandon_step(const std::string& reason) {
  gradients_.abandon(reason);
  for (Layer& layer : layers_) layer.commit(false);
  finite_ = true;
  prepared_ = run_ = 0;
}

void Exchange::save_state(const StateWriter& state) const {
  state.put("step", step_);
  state.put("weight", weight_);
  const Traffic& traffic = stats_.traffic;
  std::vector<std::int64_t> counts = {stats_.steps,
                                      stats_.dropped_steps,
                                      static_cast<std::int64_t>(traffic.entries),
                                      static_cast<std::int64_t>(traffic.saturated),
                                      static_cast<std::int64_t>(traffic.control_bytes),
                                      static_cast<std::int64_t>(tally_.payload_bytes),
                                      static_cast<std::int64_t>(tally_.paper_floats),
                                      static_cast<std::int64_t>(tally_.framed_bytes),
                                      static_cast<std::int64_t>(tally_.summed_bytes)};
  counts.insert(counts.end(), tensor_bytes_.begin(), tensor_bytes_.end());
  state.put("counts", std::move(counts));
  for (const Layer& layer : layers_) layer.save_state(state.within(layer.info().name));
  watch_.save_state(state.within("window"), layers_);
}

void Exchange::load_state(const StateReader& state, Residuals residuals) {
  state.get("step", step_);
  double weight = weight_;
  if (state.has("weight")) state.get("weight", weight);  // Older states do not.
  if (!(weight >= 0 && std::isfinite(weight)))
    throw Error("state: a share of the samples of " + std::to_string(weight) + ", expected at least 0");
  if (residuals == Residuals::kKeep) weight_ = weight;
  std::vector<std::int64_t> counts;
  state.get("counts", counts);
  constexpr std::size_t kOfAll = 9;  // Then come those of single tensors, which older states do not have.
  if (counts.size() < kOfAll) state.get("counts", counts, kOfAll);  // Refuses it.
  const auto count = [&](std::size_t i) { return static_cast<std::uint64_t>(counts[i]); };
  stats_ = {.steps = counts[0],
            .dropped_steps = counts[1],
            .traffic = {.entries = count(2), .saturated = count(3), .control_bytes = count(4)}};
  tally_ = {.payload_bytes = count(5),
            .paper_floats = count(6),
            .framed_bytes = count(7),
            .summed_bytes = count(8)};
  for (Layer& layer : layers_) layer.load_state(state.within(layer.info().name));
  watch_.load_state(state.within("window"), layers_);
  if (residuals == Residuals::kKeep)
    state.require_all_read();
  else
    for (Layer& layer : layers_) layer.forget_own();
  // Last, so that a state of another model is refused by the name of what differs.
  tensor_bytes_.assign(layers_.size(), 0);
  if (counts.size() == kOfAll) return;
  state.get("counts", counts, kOfAll + layers_.size());
  std::copy(counts.begin() + kOfAll, counts.end(), tensor_bytes_.begin());
}

EpochStats Exchange::epoch_stats() const {
  EpochStats stats = stats_;
  stats.traffic.payload_bytes = tally_.payload_bytes;
  stats.traffic.wire_bytes = tally_.wire_bytes(gradients_.size());
  stats.traffic.paper_floats = tally_.paper_floats;
  stats.tensor_bytes.assign(tensor_bytes_.begin(), tensor_bytes_.end());
  return stats;
}

EpochStats Exchange::take_epoch_stats() {
  const EpochStats stats = epoch_stats();
  stats_ = {};
  tally_ = {};
  tensor_bytes_.assign(layers_.size(), 0);
  return stats;
}

WindowStats Exchange::take_window() {
  return watch_.take(layers_, options_.levels, gradients_.size(), options_.routing);
}

}  // namespace accordion
