#include "accordion/exchange/rounds.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/base/half.h"
#include "accordion/base/parallel.h"
#include "accordion/exchange/frame.h"
#include "accordion/kernels/dense.h"

namespace accordion {
namespace {

// Counts the seconds of its life.
class Seconds {
 public:
  explicit Seconds(double& total) : total_(total) {}
  ~Seconds() { total_ += seconds_between(begin_, StepClock::now()); }
  Seconds(const Seconds&) = delete;
  Seconds& operator=(const Seconds&) = delete;

 private:
  double& total_;
  StepClock::time_point begin_ = StepClock::now();
};

}  // namespace

template <class Move>
void BucketRounds::timed(Pattern pattern, std::size_t bytes, Move move) {
  const auto begin = StepClock::now();
  move();
  counts_.times.collectives.push_back({pattern, bytes, begin, StepClock::now()});
}

// Parts that were worked on side by side share the time that this took.
void BucketRounds::share(std::span<Part> parts, double Part::*of, double seconds) {
  double sum = 0;
  for (const Part& part : parts) sum += part.*of;
  if (sum > 0)
    for (Part& part : parts) part.*of *= seconds / sum;
}

Context BucketRounds::context(int tensor, int piece) const {
  Context context = step_;
  context.tensor = tensor;
  context.piece = piece;
  return context;
}

void BucketRounds::prepare(std::span<float> bucket, std::span<const Slice> slices, const Context& step) {
  bucket_ = bucket;
  slices_ = slices;
  step_ = step;
  counts_ = {};
  for (const Slice& slice : slices_)
    if (!layer(slice.tensor).keeps_residual())
      layer(slice.tensor).flush_into(bucket_.subspan(slice.offset, slice.count));
  prepare_dense();
  encode_round(0);
}

BucketCounts BucketRounds::run(bool check_dense) {
  send_dense(check_dense);
  int rounds = 0;
  for (const Slice& slice : slices_)
    if (const Compressor* codec = layer(slice.tensor).compressor())
      rounds = std::max(rounds, codec->rounds());
  for (int i = 0; i < rounds; ++i) {
    if (i > 0) encode_round(i);
    send_round();
  }
  return std::exchange(counts_, {});
}

// Dividing before the sum keeps it in range, and is exact where the number of ranks is a power of two.
void BucketRounds::prepare_dense() {
  std::size_t count = 0;
  for (const Slice& slice : slices_)
    if (!layer(slice.tensor).compressor()) count += slice.count;
  const float factor = 1.0f / static_cast<float>(gradients_.size());
  // Nothing to leave out: where it lies.
  if (count == bucket_.size()) {
    if (factor != 1) kernels::scale(bucket_, factor);
    return;
  }
  dense_.resize(count);
  std::size_t at = 0;
  for (const Slice& slice : slices_) {
    if (layer(slice.tensor).compressor()) continue;
    std::copy_n(bucket_.data() + slice.offset, slice.count, dense_.data() + at);
    at += slice.count;
  }
  kernels::scale(std::span(dense_), factor);
}

void BucketRounds::send_dense(bool check) {
  std::size_t count = 0;
  for (const Slice& slice : slices_)
    if (!layer(slice.tensor).compressor()) count += slice.count;
  const bool in_place = count == bucket_.size();
  if (count == 0) return;
  const std::span<float> values = in_place ? bucket_ : std::span(dense_);
  timed(Pattern::kSum, values.size_bytes(), [&] { gradients_.sum(values); });
  counts_.tally.sum(values.size_bytes(), values.size());
  for (const Slice& slice : slices_)
    if (!layer(slice.tensor).compressor())
      counts_.tensors.push_back({slice.tensor, slice.count * sizeof(float)});
  // The same on every rank, so all of them notice. A square of a finite float is finite in double precision.
  if (check) counts_.finite = counts_.finite && std::isfinite(kernels::sum_of_squares(values));
  if (in_place) return;
  std::size_t at = 0;
  for (const Slice& slice : slices_) {
    if (layer(slice.tensor).compressor()) continue;
    std::copy_n(dense_.data() + at, slice.count, bucket_.data() + slice.offset);
    at += slice.count;
  }
}

void BucketRounds::encode_round(int i) {
  parts_.clear();
  kinds_.clear();
  for (const Slice& slice : slices_) {
    Compressor* codec = layer(slice.tensor).compressor();
    if (!codec || codec->rounds() <= i) continue;
    const Round what = codec->round(i, context(slice.tensor));
    const int pieces = what.pattern == Pattern::kScatter ? gradients_.size() : 1;
    for (int piece = 0; piece < pieces; ++piece)
      parts_.push_back({i, slice.tensor, what, bucket_.subspan(slice.offset, slice.count), piece});
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
  std::size_t room = 0;
  for (std::size_t begin = 0, end = 0; begin < parts_.size(); begin = end) {
    // Wherever a kind's messages begin, all elements are aligned.
    room = (room + 7) / 8 * 8;
    for (; end < parts_.size() && kind(parts_[end]) == kind(parts_[begin]); ++end) {
      const Part& part = parts_[end];
      const bool framed = part.what.pattern == Pattern::kGather || part.what.pattern == Pattern::kScatter;
      parts_[end].offset = room;
      room += framed ? frame_bytes(part.what.max_bytes) : part.what.max_bytes;
    }
    kinds_.push_back(std::span(parts_).subspan(begin, end - begin));
  }
  // Never shrinks: growing again would clear bytes that are about to be overwritten.
  if (send_.size() < room) send_.resize(room);
  for (const std::span<Part> parts : kinds_) encode_parts(parts);
}

// Messages that are added lie end to end; all others are framed.
void BucketRounds::encode_parts(std::span<Part> parts) {
  const Pattern pattern = parts[0].what.pattern;
  const bool framed = pattern == Pattern::kGather || pattern == Pattern::kScatter;
  const std::size_t header = framed ? kFrameHeader : 0;

  // Chunks of one layer share its codec, and so its scratch memory: they are encoded one after the other.
  const std::size_t layers = pattern == Pattern::kScatter
                                 ? parts.size() / static_cast<std::size_t>(gradients_.size())
                                 : parts.size();
  const auto begin = StepClock::now();
  parallel_for(layers, threads_, [&](std::size_t k) {
    for (; k < parts.size(); k += layers) {
      Part& part = parts[k];
      const Seconds seconds(part.encode_seconds);
      const auto out = std::span(send_).subspan(part.offset + header, part.what.max_bytes);
      part.encoded = layer(part.tensor)
                         .compressor()
                         ->encode(part.round, context(part.tensor, part.piece),
                                  layer(part.tensor).feedback(part.gradient), out);
    }
  });
  if (threads_ > 1) share(parts, &Part::encode_seconds, seconds_between(begin, StepClock::now()));

  std::size_t end = parts[0].offset;
  for (Part& part : parts) {
    counts_.finite = counts_.finite && part.encoded.finite;
    counts_.tensors.push_back({part.tensor, part.encoded.bytes});
    counts_.entries += part.encoded.count;
    counts_.saturated += part.encoded.saturated;
    if (!framed) continue;
    // What a shorter message left free is closed up.
    if (part.offset != end)
      std::memmove(send_.data() + end + header, send_.data() + part.offset + header, part.encoded.bytes);
    part.offset = end;
    end += write_frame(std::span(send_).subspan(end), layer(part.tensor).codec(), part.gradient.size(),
                       part.encoded);
  }
}

void BucketRounds::send_round() {
  for (const std::span<Part> parts : kinds_) {
    switch (parts[0].what.pattern) {
      case Pattern::kSum:
      case Pattern::kMax:
        reduce_parts(parts);
        break;
      case Pattern::kGather:
        gather_parts(parts);
        break;
      case Pattern::kScatter:
        scatter_parts(parts);
        break;
    }
    note_times(parts);
  }
}

// Of a scattered round, first come all layers' pieces for rank 0, then those for rank 1.
void BucketRounds::note_times(std::span<const Part> parts) {
  std::vector<LayerTime>& times = counts_.times.layers;
  const std::size_t first = times.size();
  for (const Part& part : parts) {
    const bool framed = part.what.pattern == Pattern::kGather || part.what.pattern == Pattern::kScatter;
    const bool mine = part.what.pattern == Pattern::kScatter && part.piece == gradients_.rank();
    const std::size_t bytes = mine ? 0 : framed ? frame_bytes(part.encoded.bytes) : part.encoded.bytes;
    if (part.piece == 0)
      times.push_back(
          {part.tensor, part.round, part.what.pattern, bytes, part.encode_seconds, part.decode_seconds});
    if (part.piece == 0) continue;
    LayerTime& time = times[first + static_cast<std::size_t>(&part - parts.data()) % (times.size() - first)];
    time.bytes += bytes;
    time.encode += part.encode_seconds;
    time.decode += part.decode_seconds;
  }
}

void BucketRounds::reduce_parts(std::span<Part> parts) {
  const Element element = parts[0].what.element;
  std::byte* const first = send_.data() + parts[0].offset;
  const std::size_t bytes = parts.back().offset + parts.back().encoded.bytes - parts[0].offset;
  const auto reduce = [&](auto* values) {
    const std::span span(values, bytes / sizeof *values);
    timed(parts[0].what.pattern, bytes, [&] {
      if constexpr (!std::is_enum_v<std::remove_pointer_t<decltype(values)>>)
        if (parts[0].what.pattern == Pattern::kMax) return gradients_.max(span);
      gradients_.sum(span);
    });
  };
  switch (element) {
    case Element::kFloat:
      reduce(reinterpret_cast<float*>(first));
      break;
    case Element::kHalf:
      reduce(reinterpret_cast<Half*>(first));
      break;
    case Element::kBfloat16:
      reduce(reinterpret_cast<Bfloat16*>(first));
      break;
    case Element::kInt16:
      reduce(reinterpret_cast<std::int16_t*>(first));
      break;
    case Element::kInt8:
    case Element::kByte:
      reduce(reinterpret_cast<std::int8_t*>(first));
      break;
  }
  counts_.tally.sum(bytes, bytes / element_bytes(element));
  decode_parts(parts, [&](std::size_t k) {
    Part& part = parts[k];
    const Message result{std::span<const std::byte>(send_).subspan(part.offset, part.encoded.bytes)};
    decode_part(part, std::span(&result, 1));
  });
}

template <class Decode>
void BucketRounds::decode_parts(std::span<Part> parts, Decode decode) {
  const auto begin = StepClock::now();
  parallel_for(parts.size(), threads_, decode);
  if (threads_ > 1) share(parts, &Part::decode_seconds, seconds_between(begin, StepClock::now()));
}

void BucketRounds::decode_part(Part& part, std::span<const Message> messages) {
  const Seconds seconds(part.decode_seconds);
  layer(part.tensor).compressor()->decode(part.round, context(part.tensor), messages, part.gradient);
}

void BucketRounds::gather_parts(std::span<Part> parts) {
  const auto ranks = static_cast<std::size_t>(gradients_.size());
  const std::size_t begin = parts[0].offset;
  const std::uint64_t mine = parts.back().offset + frame_bytes(parts.back().encoded.bytes) - begin;
  lengths_.assign(ranks, mine);
  if (!parts[0].what.fixed) {
    gradients_.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(lengths_)));
    counts_.control_bytes += sizeof mine;
    std::uint64_t most = 0;
    for (const Part& part : parts) most += frame_bytes(part.what.max_bytes);
    for (std::size_t r = 0; r < ranks; ++r)
      if (lengths_[r] > most)
        throw Error("rank " + std::to_string(gradients_.rank()) + ": rank " + std::to_string(r) +
                    " announces " + std::to_string(lengths_[r]) + " bytes, expected at most " +
                    std::to_string(most));
  }
  receive_parts();
  timed(Pattern::kGather, mine,
        [&] { gradients_.gather(std::span<const std::byte>(send_).subspan(begin, mine), places_); });
  for (const Part& part : parts) counts_.tally.gather(part.encoded.bytes, gradients_.size());
  decode_frames(parts);
}

// Every rank sends me as much as I send to myself: messages for one rank are equally long.
void BucketRounds::scatter_parts(std::span<Part> parts) {
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
  std::size_t others = 0;
  for (const std::span<const std::byte> message : scattered_) others += message.size();
  timed(Pattern::kScatter, others - mine, [&] { gradients_.all_to_all(scattered_, places_); });
  for (const Part& part : parts) counts_.tally.scatter(part.encoded.bytes, part.piece == gradients_.rank());
  decode_frames(parts.subspan(static_cast<std::size_t>(gradients_.rank()) * layers, layers));
}

// Makes places_ of lengths_.
void BucketRounds::receive_parts() {
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
void BucketRounds::decode_frames(std::span<Part> parts) {
  const std::size_t ranks = places_.size();
  messages_.resize(parts.size() * ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    std::span<const std::byte> unread = places_[r];
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const Layer& of = layer(parts[k].tensor);
      messages_[k * ranks + r] =
          read_frame(unread, of.codec(), parts[k].gradient.size(), parts[k].what.max_bytes,
                     "message of rank " + std::to_string(r) + " for " + of.info().name);
    }
  }
  decode_parts(parts,
               [&](std::size_t k) { decode_part(parts[k], std::span(messages_).subspan(k * ranks, ranks)); });
}

}  // namespace accordion
