#include "accordion/exchange/exchange.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/base/half.h"
#include "accordion/base/hash.h"
#include "accordion/base/parallel.h"
#include "accordion/exchange/frame.h"
#include "accordion/kernels/dense.h"

namespace accordion {

ExchangeOptions as_published(ExchangeOptions options) {
  if (!options.published) return options;
  options.routing.paper = true;
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
      watch_(options_.track, layers_) {
  set_levels(std::vector<int>(layers_.size(), 0));
}

void Exchange::set_levels(std::span<const int> levels) {
  compresses_ = false;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto level = static_cast<std::size_t>(levels[i]);
    if (levels[i] != layers_[i].level() || step_ == 0)
      layers_[i].set_level(levels[i], options_.levels.at(level), gradients_.rank(), gradients_.size(),
                           options_.routing);
    compresses_ = compresses_ || layers_[i].compressor();
  }
  require_same_levels();
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

Context Exchange::context(int tensor, int piece) const {
  return {options_.seed, step_, epoch_, tensor, gradients_.rank(), gradients_.size(), piece};
}

// Whose gradients are watched: this rank's own, before anything is done to them, or what all ranks decoded.
template <class T>
void Exchange::watch(std::span<T> bucket, std::span<const Slice> slices, bool aggregated) {
  const Tracking& track = watch_.tracking();
  if (!track.norms || track.aggregated != aggregated || (!aggregated && weight_ == 0)) return;
  for (const Slice& slice : slices) {
    const std::span<const T> gradient = bucket.subspan(slice.offset, slice.count);
    // Where training goes on after a step that is not finite, its norms must not be lost to it.
    if constexpr (std::is_same_v<T, float>)
      if (options_.watch_dense && !std::isfinite(kernels::sum_of_squares(gradient))) continue;
    watch_.add(slice.tensor, gradient);
  }
}

void Exchange::mean(std::span<float> bucket, std::span<const Slice> slices) {
  watch(bucket, slices, false);
  if (weight_ != 1) kernels::scale(bucket, static_cast<float>(weight_));
  for (const Slice& slice : slices)
    if (Layer& layer = layers_[static_cast<std::size_t>(slice.tensor)]; !layer.keeps_residual())
      layer.flush_into(bucket.subspan(slice.offset, slice.count));

  send_dense(bucket, slices);
  int rounds = 0;
  for (const Slice& slice : slices)
    if (Compressor* codec = layers_[static_cast<std::size_t>(slice.tensor)].compressor())
      rounds = std::max(rounds, codec->rounds());
  for (int i = 0; i < rounds; ++i) run_round(i, bucket, slices);
  watch(bucket, slices, true);
}

void Exchange::mean(std::span<double> bucket, std::span<const Slice> slices) {
  watch(bucket, slices, false);
  const double factor = weight_ / gradients_.size();
  for (double& value : bucket) value *= factor;
  dense_sum(bucket);
  watch(bucket, slices, true);
}

template <class T>
void Exchange::dense_sum(std::span<T> values) {
  gradients_.sum(values);
  // The same on every rank, so all of them notice. A square of a finite float is finite in double precision.
  if (watches_dense()) {
    if constexpr (std::is_same_v<T, float>)
      finite_ = finite_ && std::isfinite(kernels::sum_of_squares(values));
    else
      finite_ =
          finite_ && std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(value); });
  }
  tally_.sum(values.size_bytes(), values.size());
}

// Dividing before the sum keeps it in range, and is exact where the number of ranks is a power of two.
void Exchange::send_dense(std::span<float> bucket, std::span<const Slice> slices) {
  const float factor = 1.0f / static_cast<float>(gradients_.size());
  std::size_t count = 0;
  for (const Slice& slice : slices)
    if (!layers_[static_cast<std::size_t>(slice.tensor)].compressor()) count += slice.count;
  if (count == bucket.size()) {  // Nothing to leave out: where it lies.
    if (factor != 1) kernels::scale(bucket, factor);
    return dense_sum(bucket);
  }
  if (count == 0) return;
  dense_.resize(std::max(dense_.size(), count));
  const auto copy = [&](bool back) {
    std::size_t at = 0;
    for (const Slice& slice : slices) {
      if (layers_[static_cast<std::size_t>(slice.tensor)].compressor()) continue;
      const auto gradient = bucket.subspan(slice.offset, slice.count);
      const auto staged = std::span(dense_).subspan(at, slice.count);
      std::copy_n(back ? staged.begin() : gradient.begin(), slice.count,
                  back ? gradient.begin() : staged.begin());
      at += slice.count;
    }
  };
  copy(false);
  const auto staged = std::span(dense_).first(count);
  kernels::scale(staged, factor);
  dense_sum(staged);
  copy(true);
}

void Exchange::run_round(int i, std::span<float> bucket, std::span<const Slice> slices) {
  parts_.clear();
  for (const Slice& slice : slices) {
    Compressor* codec = layers_[static_cast<std::size_t>(slice.tensor)].compressor();
    if (!codec || codec->rounds() <= i) continue;
    const Round what = codec->round(i, context(slice.tensor));
    const int pieces = what.pattern == Pattern::kScatter ? gradients_.size() : 1;
    for (int piece = 0; piece < pieces; ++piece)
      parts_.push_back({i, slice.tensor, what, bucket.subspan(slice.offset, slice.count), piece});
  }
  // The same order on every rank: by kind of collective, then by receiver, then as the layers lie in the
  // bucket.
  const auto kind = [](const Part& part) {
    const bool adds = part.what.pattern == Pattern::kSum || part.what.pattern == Pattern::kMax;
    return std::tuple(part.what.pattern, adds ? part.what.element : Element::kByte, part.what.fixed);
  };
  std::stable_sort(parts_.begin(), parts_.end(), [&](const Part& a, const Part& b) {
    return std::tuple(kind(a), a.piece) < std::tuple(kind(b), b.piece);
  });

  for (std::size_t begin = 0, end = 0; begin < parts_.size(); begin = end) {
    while (end < parts_.size() && kind(parts_[end]) == kind(parts_[begin])) ++end;
    const auto group = std::span(parts_).subspan(begin, end - begin);
    encode_parts(group);
    switch (group[0].what.pattern) {
      case Pattern::kSum:
      case Pattern::kMax:
        reduce_parts(group);
        break;
      case Pattern::kGather:
        gather_parts(group);
        break;
      case Pattern::kScatter:
        scatter_parts(group);
        break;
    }
  }
}

// Messages that are added lie end to end; all others are framed.
void Exchange::encode_parts(std::span<Part> parts) {
  const Pattern pattern = parts[0].what.pattern;
  const bool framed = pattern == Pattern::kGather || pattern == Pattern::kScatter;
  const std::size_t header = framed ? kFrameHeader : 0;
  std::size_t room = 0;
  for (Part& part : parts) {
    part.offset = room;
    room += framed ? frame_bytes(part.what.max_bytes) : part.what.max_bytes;
  }
  if (send_.size() < room) send_.resize(room);

  // Chunks of one layer share its codec, and so its scratch memory: they are encoded one after the other.
  const std::size_t layers = pattern == Pattern::kScatter
                                 ? parts.size() / static_cast<std::size_t>(gradients_.size())
                                 : parts.size();
  parallel_for(layers, options_.threads, [&](std::size_t k) {
    for (; k < parts.size(); k += layers) {
      Part& part = parts[k];
      Layer& layer = layers_[static_cast<std::size_t>(part.tensor)];
      const auto out = std::span(send_).subspan(part.offset + header, part.what.max_bytes);
      part.encoded = layer.compressor()->encode(part.round, context(part.tensor, part.piece),
                                                layer.feedback(part.gradient), out);
    }
  });

  std::size_t end = 0;
  for (Part& part : parts) {
    finite_ = finite_ && part.encoded.finite;
    stats_.traffic.entries += part.encoded.count;
    if (!framed) continue;
    // What a shorter message left free is closed up.
    if (part.offset != end)
      std::memmove(send_.data() + end + header, send_.data() + part.offset + header, part.encoded.bytes);
    part.offset = end;
    end += write_frame(std::span(send_).subspan(end), layers_[static_cast<std::size_t>(part.tensor)].codec(),
                       part.gradient.size(), part.encoded);
  }
}

void Exchange::reduce_parts(std::span<const Part> parts) {
  const Element element = parts[0].what.element;
  const std::size_t bytes = parts.back().offset + parts.back().encoded.bytes;
  const auto reduce = [&](auto* values) {
    const std::span span(values, bytes / sizeof *values);
    if constexpr (!std::is_enum_v<std::remove_pointer_t<decltype(values)>>)
      if (parts[0].what.pattern == Pattern::kMax) return gradients_.max(span);
    gradients_.sum(span);
  };
  switch (element) {
    case Element::kFloat:
      reduce(reinterpret_cast<float*>(send_.data()));
      break;
    case Element::kHalf:
      reduce(reinterpret_cast<Half*>(send_.data()));
      break;
    case Element::kBfloat16:
      reduce(reinterpret_cast<Bfloat16*>(send_.data()));
      break;
    case Element::kInt16:
      reduce(reinterpret_cast<std::int16_t*>(send_.data()));
      break;
    case Element::kInt8:
    case Element::kByte:
      reduce(reinterpret_cast<std::int8_t*>(send_.data()));
      break;
  }
  tally_.sum(bytes, bytes / element_bytes(element));
  parallel_for(parts.size(), options_.threads, [&](std::size_t k) {
    const Part& part = parts[k];
    const Message result{std::span<const std::byte>(send_).subspan(part.offset, part.encoded.bytes)};
    layers_[static_cast<std::size_t>(part.tensor)].compressor()->decode(part.round, context(part.tensor),
                                                                        std::span(&result, 1), part.gradient);
  });
}

void Exchange::gather_parts(std::span<const Part> parts) {
  const auto ranks = static_cast<std::size_t>(gradients_.size());
  const std::uint64_t mine = parts.back().offset + frame_bytes(parts.back().encoded.bytes);
  lengths_.assign(ranks, mine);
  if (!parts[0].what.fixed) {
    gradients_.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(lengths_)));
    stats_.traffic.control_bytes += sizeof mine;
    std::uint64_t most = 0;
    for (const Part& part : parts) most += frame_bytes(part.what.max_bytes);
    for (std::size_t r = 0; r < ranks; ++r)
      if (lengths_[r] > most)
        throw Error("rank " + std::to_string(gradients_.rank()) + ": rank " + std::to_string(r) +
                    " announces " + std::to_string(lengths_[r]) + " bytes, expected at most " +
                    std::to_string(most));
  }
  receive_parts();
  gradients_.gather(std::span<const std::byte>(send_).first(mine), places_);
  for (const Part& part : parts) tally_.gather(part.encoded.bytes, gradients_.size());
  decode_frames(parts);
}

// Every rank sends me as much as I send to myself: messages for one rank are equally long.
void Exchange::scatter_parts(std::span<const Part> parts) {
  const auto ranks = static_cast<std::size_t>(gradients_.size()), layers = parts.size() / ranks;
  scattered_.clear();
  for (std::size_t r = 0; r < ranks; ++r) {
    const Part &first = parts[r * layers], &last = parts[(r + 1) * layers - 1];
    scattered_.push_back(std::span<const std::byte>(send_).subspan(
        first.offset, last.offset + frame_bytes(last.encoded.bytes) - first.offset));
  }
  const std::size_t mine = scattered_[static_cast<std::size_t>(gradients_.rank())].size();
  lengths_.assign(ranks, mine);
  receive_parts();
  gradients_.all_to_all(scattered_, places_);
  for (const Part& part : parts) tally_.scatter(part.encoded.bytes, part.piece == gradients_.rank());
  decode_frames(parts.subspan(static_cast<std::size_t>(gradients_.rank()) * layers, layers));
}

// Makes places_ of lengths_.
void Exchange::receive_parts() {
  std::size_t total = 0;
  for (std::uint64_t length : lengths_) total += length;
  if (receive_.size() < total) receive_.resize(total);
  places_.clear();
  std::size_t at = 0;
  for (std::uint64_t length : lengths_) {
    places_.push_back(std::span(receive_).subspan(at, length));
    at += length;
  }
}

// In each place lie the frames of all parts, in order.
void Exchange::decode_frames(std::span<const Part> parts) {
  const std::size_t ranks = places_.size();
  messages_.resize(parts.size() * ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    std::span<const std::byte> unread = places_[r];
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const Layer& layer = layers_[static_cast<std::size_t>(parts[k].tensor)];
      messages_[k * ranks + r] =
          read_frame(unread, layer.codec(), parts[k].gradient.size(), parts[k].what.max_bytes,
                     "message of rank " + std::to_string(r) + " for " + layer.info().name);
    }
  }
  parallel_for(parts.size(), options_.threads, [&](std::size_t k) {
    layers_[static_cast<std::size_t>(parts[k].tensor)].compressor()->decode(
        parts[k].round, context(parts[k].tensor), std::span(messages_).subspan(k * ranks, ranks),
        parts[k].gradient);
  });
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

namespace {

// Names pieces after their tensor.
struct Prefixed final : StateVisitor {
  Prefixed(StateVisitor& inner, const std::string& prefix) : inner(inner), prefix(prefix + "/") {}
  StateVisitor& inner;
  std::string prefix;
  void visit(std::string_view name, std::vector<float>& values) override {
    inner.visit(prefix + std::string(name), values);
  }
};

}  // namespace

void Exchange::visit_state(StateVisitor& visitor) {
  // Whole numbers up to 2^24 are exact in a float.
  std::vector<float> step = {static_cast<float>(step_ >> 24), static_cast<float>(step_ & 0xffffff)};
  visitor.visit("step", step);
  if (step.size() != 2)
    throw Error("exchange: the number of steps has " + std::to_string(step.size()) + " parts, expected 2");
  step_ = (static_cast<std::uint64_t>(step[0]) << 24) + static_cast<std::uint64_t>(step[1]);
  for (Layer& layer : layers_) {
    Prefixed prefixed(visitor, layer.info().name);
    layer.visit_state(prefixed);
  }
  watch_.visit_state(visitor, layers_);
}

EpochStats Exchange::take_epoch_stats() {
  const Tally tally = std::exchange(tally_, {});
  stats_.traffic.payload_bytes = tally.payload_bytes;
  stats_.traffic.wire_bytes = tally.wire_bytes(gradients_.size());
  stats_.traffic.paper_floats = tally.paper_floats;
  return std::exchange(stats_, {});
}

WindowStats Exchange::take_window() {
  return watch_.take(layers_, options_.levels, gradients_.size(), options_.routing);
}

}  // namespace accordion
