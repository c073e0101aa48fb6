// QSGD (Alistarh et al. 2017): an entry's magnitude, in units of its block's scale / s, is rounded at random
// to one of the two whole numbers beside it, so that the mean is right.
//
// message := scale: f32[blocks], level: int(bits)[n]      -- packed, the first in the low bits; of -s .. s
//
// With Elias codes, a stream of bits; W is a number's omega code (elias.h), f32 starts with its low bit:
//
// message := block[blocks]
// block   := scale: f32, non-zero levels + 1: W, entry[non-zero levels]
// entry   := distance from the entry before, or from -1: W, negative: bit, magnitude: W
//
// With share-scale there are two rounds, and all ranks use each block's largest scale:
//
// round 0 := scale: f32[blocks]      -- maximum
// round 1 := level: i16[n]           -- sum
#include "accordion/compress/qsgd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>

#include "accordion/compress/elias.h"
#include "accordion/kernels/draws.h"
#include "accordion/kernels/levels.h"
#include "accordion/kernels/quantize.h"
#include "accordion/kernels/quantize_packed.h"

namespace accordion {
namespace {

using kernels::kChunk;

constexpr int steps_of(int bits) {
  return (1 << (bits - 1)) - 1;
}

class Qsgd final : public Compressor {
 public:
  Qsgd(const QsgdOptions& options, const Shape& shape)
      : bits_(std::stoi(options.bits)),
        l2_(options.norm == "l2"),
        elias_(options.coding == "elias"),
        shared_(options.share_scale),
        n_(shape.count()),
        block_(static_cast<std::size_t>(options.block)),
        scales_((n_ + block_ - 1) / block_),
        max_bytes_(payload_bytes(options, shape, 1)),
        all_levels_(elias_ ? n_ : 0) {}

  bool wants_feedback() const override { return false; }

  int rounds() const override { return shared_ ? 2 : 1; }

  Round round(int i, const Context&) const override {
    if (!shared_) return {Pattern::kGather, Element::kByte, max_bytes_, !elias_, min_bytes()};
    if (i == 0) return {Pattern::kMax, Element::kFloat, 4 * scales_.size()};
    return {Pattern::kSum, Element::kInt16, 2 * n_};
  }

  Encoded encode(int i, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    if (i == 0) finite_ = true;
    if (shared_ && i == 0) {
      for_each_block(0, n_, [&](std::size_t block, std::size_t begin, std::size_t end) {
        scales_[block] = measure(compensated(feedback, begin, end));
      });
      std::copy_n(reinterpret_cast<const std::byte*>(scales_.data()), 4 * scales_.size(), out.data());
      return {.bytes = 4 * scales_.size(), .finite = finite_};
    }
    const RandomKey key = context.private_key("qsgd");
    for (std::size_t first = write_whole_chunks(key, feedback, out); first < n_; first += kChunk) {
      const std::size_t length = std::min(kChunk, n_ - first);
      quantize(key, feedback, first, length);
      write(first, length, out);
    }
    if (elias_) return {.bytes = write_elias(out), .finite = finite_};
    if (!shared_)
      std::copy_n(reinterpret_cast<const std::byte*>(scales_.data()), 4 * scales_.size(), out.data());
    return {.bytes = round(i, context).max_bytes, .finite = finite_};
  }

  void decode(int i, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    if (!elias_)
      for (std::size_t rank = 0; rank < messages.size(); ++rank)
        if (const std::size_t bytes = round(i, context).max_bytes; messages[rank].payload.size() != bytes)
          throw Error("qsgd: payload of message from rank " + std::to_string(rank) + " has " +
                      std::to_string(messages[rank].payload.size()) + " bytes, expected " +
                      std::to_string(bytes));
    const double per_level = 1.0 / steps_of(bits_) / context.world;
    if (elias_) {
      decode_elias(messages, per_level, mean);
    } else if (!shared_) {
      decode_fixed(messages, per_level, mean);
    } else if (i == 0) {
      read_scales(messages[0].payload, 0, scales_);
    } else {
      const auto* sums = reinterpret_cast<const std::int16_t*>(messages[0].payload.data());
      for_each_block(0, n_, [&](std::size_t block, std::size_t begin, std::size_t end) {
        const auto unit = static_cast<float>(scales_[block] * per_level);
        for (std::size_t k = begin; k < end; ++k) mean[k] = unit * static_cast<float>(sums[k]);
      });
    }
  }

 private:
  // Elias codes of blocks without a level: a scale, and the code of 1.
  std::size_t min_bytes() const { return elias_ ? (33 * scales_.size() + 7) / 8 : max_bytes_; }

  // Calls part(block, begin, end) for each block's part of first .. last - 1.
  template <class Part>
  void for_each_block(std::size_t first, std::size_t last, Part part) const {
    for (std::size_t begin = first; begin < last;) {
      const std::size_t block = begin / block_, end = std::min(last, (block + 1) * block_);
      part(block, begin, end);
      begin = end;
    }
  }

  // Entries of a; with error feedback, it waits in `next` for what is sent to be subtracted.
  static std::span<const float> compensated(const Feedback& feedback, std::size_t begin, std::size_t end) {
    const std::span<const float> gradient = feedback.gradient.subspan(begin, end - begin);
    if (feedback.residual.empty()) return gradient;
    const std::span<float> next = feedback.next.subspan(begin, end - begin);
    std::transform(gradient.begin(), gradient.end(), feedback.residual.data() + begin, next.begin(),
                   std::plus<>());
    return next;
  }

  // The scale of a block. One that is not finite, or a maximum over ranks with it, must not reach the wire.
  float measure(std::span<const float> a) {
    const kernels::Moments moments = l2_ ? kernels::moments(a, 0) : kernels::Moments{};
    const float largest = l2_ ? moments.largest : kernels::largest_magnitude(a);
    if (!std::isfinite(largest)) finite_ = false;
    if (!std::isfinite(largest)) return 0;
    if (!l2_) return largest;
    // A norm can lie beyond the range of its entries; any larger scale than the entries will do.
    const double norm = std::min<double>(std::sqrt(moments.squares), std::numeric_limits<float>::max());
    return std::max(static_cast<float>(norm), largest);
  }

  // A chunk's levels. A block is measured where its first chunk begins.
  void quantize(RandomKey key, const Feedback& feedback, std::size_t first, std::size_t length) {
    kernels::draw(key, first / kChunk, draws_);
    if (length < kChunk) levels_.fill(0);
    for_each_block(first, first + length, [&](std::size_t block, std::size_t begin, std::size_t end) {
      if (begin == block * block_) {
        const auto a = compensated(feedback, begin, std::min(n_, begin + block_));
        if (!shared_) scales_[block] = measure(a);
      }
      std::int8_t* levels = levels_.data() + (begin - first);
      const auto a =
          (feedback.residual.empty() ? feedback.gradient : feedback.next).subspan(begin, end - begin);
      kernels::quantize(a, scales_[block], steps_of(bits_), draws_.data() + (begin - first), levels);
      if (!feedback.residual.empty())
        kernels::add_levels({levels, -scales_[block] / static_cast<float>(steps_of(bits_))},
                            feedback.next.subspan(begin, end - begin));
    });
  }

  // What is left to do after fields of fixed width whose chunks each have one scale: these go from gradient to
  // message in registers, a few at a time, so that they are read twice from the first-level cache.
  std::size_t write_whole_chunks(RandomKey key, const Feedback& feedback, std::span<std::byte> out) {
    if (elias_ || shared_ || !feedback.residual.empty() || block_ % kChunk != 0) return 0;
    constexpr std::size_t kAtOnce = 8;
    const std::size_t chunks = n_ / kChunk;
    for (std::size_t chunk = 0; chunk < chunks; chunk += kAtOnce) {
      const std::size_t count = std::min(kAtOnce, chunks - chunk), first = chunk * kChunk;
      float scales[kAtOnce];
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t begin = first + i * kChunk, block = begin / block_;
        if (begin % block_ == 0)
          scales_[block] = measure(feedback.gradient.subspan(begin, std::min(block_, n_ - begin)));
        scales[i] = scales_[block];
      }
      kernels::quantize_packed(key, chunk, feedback.gradient.subspan(first, count * kChunk), {scales, count},
                               bits_, out.data() + 4 * scales_.size() + first * bits_ / 8);
    }
    return chunks * kChunk;
  }

  void write(std::size_t first, std::size_t length, std::span<std::byte> out) {
    if (elias_) {
      std::copy_n(levels_.data(), length, all_levels_.data() + first);
    } else if (shared_) {
      std::copy_n(levels_.data(), length, reinterpret_cast<std::int16_t*>(out.data()) + first);
    } else {
      kernels::pack(levels_, bits_,
                    out.subspan(4 * scales_.size() + first * bits_ / 8, (length * bits_ + 7) / 8));
    }
  }

  std::size_t write_elias(std::span<std::byte> out) const {
    elias::Writer writer(out);
    for_each_block(0, n_, [&](std::size_t block, std::size_t begin, std::size_t end) {
      writer.bits(std::bit_cast<std::uint32_t>(scales_[block]), 32);
      writer.levels({all_levels_.data() + begin, end - begin});
    });
    return writer.finish();
  }

  void decode_elias(std::span<const Message> messages, double per_level, std::span<float> mean) const {
    std::fill(mean.begin(), mean.end(), 0.0f);
    for (std::size_t rank = 0; rank < messages.size(); ++rank) {
      elias::Reader reader(messages[rank].payload, QsgdOptions::kName, rank);
      for_each_block(0, n_, [&](std::size_t block, std::size_t begin, std::size_t end) {
        const auto scale = std::bit_cast<float>(reader.bits(32));
        check_scale(scale, block, rank);
        const double unit = static_cast<float>(scale * per_level);
        // The product is exact, and rounded before it is added, as it is for fields of fixed width.
        reader.levels(
            end - begin, static_cast<std::uint32_t>(steps_of(bits_)),
            [&](std::size_t at, int level) { mean[begin + at] += static_cast<float>(unit * level); });
      });
      reader.finish();
    }
  }

  void decode_fixed(std::span<const Message> messages, double per_level, std::span<float> mean) {
    const std::size_t blocks = scales_.size();
    all_scales_.resize(messages.size() * blocks);
    rank_levels_.resize(messages.size());
    ranks_.resize(messages.size());
    for (std::size_t rank = 0; rank < messages.size(); ++rank)
      read_scales(messages[rank].payload, rank, std::span(all_scales_).subspan(rank * blocks, blocks));
    for (std::size_t first = 0; first < n_; first += kChunk) {
      const std::size_t length = std::min(kChunk, n_ - first);
      for (std::size_t rank = 0; rank < messages.size(); ++rank)
        kernels::unpack(
            messages[rank].payload.subspan(4 * blocks + first * bits_ / 8, (length * bits_ + 7) / 8), bits_,
            rank_levels_[rank]);
      for_each_block(first, first + length, [&](std::size_t block, std::size_t begin, std::size_t end) {
        for (std::size_t rank = 0; rank < messages.size(); ++rank)
          ranks_[rank] = {rank_levels_[rank].data() + (begin - first),
                          static_cast<float>(all_scales_[rank * blocks + block] * per_level)};
        kernels::sum_levels(ranks_, mean.subspan(begin, end - begin));
      });
    }
  }

  static void check_scale(float scale, std::size_t block, std::size_t rank) {
    if (!std::isfinite(scale) || scale < 0)
      throw Error("qsgd: scale " + std::to_string(block) + " of message from rank " + std::to_string(rank) +
                  " is " + number_text(scale) + ", expected at least 0 and finite");
  }

  static void read_scales(std::span<const std::byte> payload, std::size_t rank, std::span<float> scales) {
    if (scales.empty()) return;
    if (!scales.empty()) std::memcpy(scales.data(), payload.data(), scales.size_bytes());
    for (std::size_t block = 0; block < scales.size(); ++block) check_scale(scales[block], block, rank);
  }

  int bits_;
  bool l2_, elias_, shared_, finite_ = true;
  std::size_t n_, block_;
  std::vector<float> scales_;  // This rank's, or after round 0 with share-scale all ranks'.
  std::size_t max_bytes_;
  std::vector<std::int8_t> all_levels_;
  kernels::Draws draws_;
  kernels::Levels levels_;
  // To decode: of each rank.
  std::vector<float> all_scales_;
  std::vector<kernels::Levels> rank_levels_;
  std::vector<kernels::Scaled> ranks_;
};

}  // namespace

std::unique_ptr<Compressor> make(const QsgdOptions& options, const Shape& shape) {
  check(QsgdOptions::kName, options);
  if (options.share_scale && options.coding == "elias")
    throw UsageError(
        "qsgd: coding=elias with share-scale=true, expected coding=fixed: Elias codes cannot be added");
  if (options.chunked && (options.share_scale || options.coding == "elias"))
    throw UsageError(
        "qsgd: chunked=true expects share-scale=false and coding=fixed: its messages have one length");
  return std::make_unique<Qsgd>(options, shape);
}

std::size_t payload_bytes(const QsgdOptions& options, const Shape& shape, int world) {
  const auto bits = static_cast<std::size_t>(std::stoi(options.bits)),
             block = static_cast<std::size_t>(options.block);
  const std::size_t n = shape.count(), blocks = (n + block - 1) / block;
  if (options.share_scale) return 4 * blocks + 2 * n;
  if (options.coding == "fixed") return 4 * blocks + (n * bits + 7) / 8;
  // The worst block has no zeros: then every distance is 1, and any longer one costs less than the entries it
  // skips.
  const auto worst = static_cast<std::uint32_t>(steps_of(static_cast<int>(bits)));
  const auto entry = static_cast<std::size_t>(2 + elias::length(worst));
  const auto count =
      static_cast<std::size_t>(elias::length(static_cast<std::uint32_t>(std::min(block, n)) + 1));
  return (blocks * (32 + count) + n * entry + 7) / 8;
}

}  // namespace accordion
