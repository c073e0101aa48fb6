// QSGD (Alistarh et al. 2017): an entry's magnitude, in units of its block's scale / s, is rounded at random
// to one of the two whole numbers beside it, so that the mean is right.
//
// message := scale: f32[blocks], level: int(bits)[n]      -- packed, the first in the low bits; of -s .. s
//
// With Elias codes, a stream of bits that fills bytes from the low bit up; f32 starts with its low bit, W (a
// number of at least 1 in Elias' omega code) with its high one:
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
#include <limits>

#include "accordion/kernels/dense.h"
#include "accordion/kernels/quantize.h"

namespace accordion {
namespace {

using kernels::kChunk;

constexpr int steps_of(int bits) {
  return (1 << (bits - 1)) - 1;
}

// A number's omega code, its first bit lowest: the number in binary, before it the binary length of that less
// one, and so on, and a 0 at the end.
struct Code {
  std::uint64_t bits = 0;
  int length = 1;
};

constexpr Code omega(std::uint32_t number) {
  Code code;
  while (number > 1) {
    const int width = std::bit_width(number);
    for (int i = 0; i < width; ++i) code.bits = code.bits << 1 | (number >> i & 1);
    code.length += width;
    number = static_cast<std::uint32_t>(width - 1);
  }
  return code;
}

constexpr auto kOmega = [] {
  std::array<Code, 128> codes;
  for (std::uint32_t number = 1; number < codes.size(); ++number) codes[number] = omega(number);
  return codes;
}();

Code code_of(std::uint32_t number) {
  return number < kOmega.size() ? kOmega[number] : omega(number);
}

class BitWriter {
 public:
  explicit BitWriter(std::byte* out) : begin_(out), out_(out) {}

  void put(Code code) {
    held_ |= code.bits << length_;
    length_ += code.length;
    for (; length_ >= 8; length_ -= 8, held_ >>= 8) *out_++ = static_cast<std::byte>(held_);
  }

  std::size_t finish() {
    if (length_ > 0) *out_++ = static_cast<std::byte>(held_);
    return static_cast<std::size_t>(out_ - begin_);
  }

 private:
  std::byte *begin_, *out_;
  std::uint64_t held_ = 0;
  int length_ = 0;  // Below 8 between calls, so that any code of up to 56 bits fits.
};

class BitReader {
 public:
  BitReader(std::span<const std::byte> bytes, std::size_t rank) : bytes_(bytes), rank_(rank) {}

  std::uint32_t bit() {
    if (at_ == 8 * bytes_.size()) fail("ends early");
    const std::uint32_t bit = std::to_integer<std::uint32_t>(bytes_[at_ / 8]) >> (at_ % 8) & 1;
    ++at_;
    return bit;
  }

  float scale() {
    std::uint32_t bits = 0;
    for (int i = 0; i < 32; ++i) bits |= bit() << i;
    return std::bit_cast<float>(bits);
  }

  std::uint32_t number() {
    std::uint32_t number = 1;
    while (bit() != 0) {
      if (number > 31) fail("has a number of more than 32 bits");
      std::uint32_t longer = 1;
      for (std::uint32_t i = 0; i < number; ++i) longer = longer << 1 | bit();
      number = longer;
    }
    return number;
  }

  void finish() const {
    if ((at_ + 7) / 8 != bytes_.size()) fail("goes on after the last block");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error("qsgd: message from rank " + std::to_string(rank_) + " " + what);
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t rank_, at_ = 0;
};

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

  Round round(int i, const Context& context) const override {
    if (!shared_) return {Pattern::kGather, Element::kByte, max_bytes_, !elias_};
    if (std::int64_t{context.world} * steps_of(bits_) > 32767)
      throw UsageError("qsgd: share-scale=true with bits=" + std::to_string(bits_) + " on " +
                       std::to_string(context.world) + " ranks, expected at most " +
                       std::to_string(32767 / steps_of(bits_)) + " ranks, whose sum fits 16 bits");
    if (i == 0) return {Pattern::kMax, Element::kFloat, 4 * scales_.size()};
    return {Pattern::kSum, Element::kInt16, 2 * n_};
  }

  Encoded encode(int i, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    std::span<const float> a = feedback.gradient;
    if (!feedback.residual.empty()) {
      std::copy(a.begin(), a.end(), feedback.next.begin());
      kernels::add(feedback.residual, feedback.next);
      a = feedback.next;
    }
    if (i == 0) finite_ = true;
    if (shared_ && i == 0) {
      for (std::size_t block = 0; block < scales_.size(); ++block) scales_[block] = measure(a, block);
      std::memcpy(out.data(), scales_.data(), 4 * scales_.size());
      return {.bytes = 4 * scales_.size(), .finite = finite_};
    }
    const RandomKey key = context.private_key("qsgd");
    for (std::size_t first = 0; first < n_; first += kChunk) {
      const std::size_t length = std::min(kChunk, n_ - first);
      quantize(key, a, first, length);
      write(first, length, out);
      if (!feedback.residual.empty()) subtract(feedback.next, first, length);
    }
    if (elias_) return {.bytes = write_elias(out), .finite = finite_};
    if (!shared_) std::memcpy(out.data(), scales_.data(), 4 * scales_.size());
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
  // Calls part(block, begin, end) for each block's part of first .. last - 1.
  template <class Part>
  void for_each_block(std::size_t first, std::size_t last, Part part) const {
    for (std::size_t begin = first; begin < last;) {
      const std::size_t block = begin / block_, end = std::min(last, (block + 1) * block_);
      part(block, begin, end);
      begin = end;
    }
  }

  // A scale that is not finite, or a maximum over ranks with it, must not reach the wire.
  float measure(std::span<const float> a, std::size_t block) {
    a = a.subspan(block * block_, std::min(block_, n_ - block * block_));
    const kernels::Moments moments = l2_ ? kernels::moments(a, 0) : kernels::Moments{};
    const float largest = l2_ ? moments.largest : kernels::largest_magnitude(a);
    if (!std::isfinite(largest)) finite_ = false;
    if (!std::isfinite(largest)) return 0;
    if (!l2_) return largest;
    // A norm can lie beyond the range of its entries; any larger scale than the entries will do.
    const double norm = std::min<double>(std::sqrt(moments.squares), std::numeric_limits<float>::max());
    return std::max(static_cast<float>(norm), largest);
  }

  void quantize(RandomKey key, std::span<const float> a, std::size_t first, std::size_t length) {
    kernels::draw(key, first / kChunk, draws_);
    if (length < kChunk) levels_.fill(0);
    for_each_block(first, first + length, [&](std::size_t block, std::size_t begin, std::size_t end) {
      if (!shared_ && begin == block * block_) scales_[block] = measure(a, block);
      kernels::quantize(a.subspan(begin, end - begin), scales_[block], steps_of(bits_),
                        draws_.data() + (begin - first), levels_.data() + (begin - first));
    });
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

  // next -= what the levels stand for
  void subtract(std::span<float> next, std::size_t first, std::size_t length) {
    for_each_block(first, first + length, [&](std::size_t block, std::size_t begin, std::size_t end) {
      const std::span<float> values = std::span(values_).first(end - begin);
      kernels::dequantize(levels_.data() + (begin - first),
                          -scales_[block] / static_cast<float>(steps_of(bits_)), values);
      kernels::add(values, next.subspan(begin, end - begin));
    });
  }

  std::size_t write_elias(std::span<std::byte> out) const {
    BitWriter writer(out.data());
    for_each_block(0, n_, [&](std::size_t block, std::size_t begin, std::size_t end) {
      const std::int8_t* levels = all_levels_.data();
      const auto zeros = std::count(levels + begin, levels + end, 0);
      writer.put({std::bit_cast<std::uint32_t>(scales_[block]), 32});
      writer.put(code_of(static_cast<std::uint32_t>(end - begin - static_cast<std::size_t>(zeros)) + 1));
      std::size_t before = begin - 1;
      for (std::size_t k = begin; k < end; ++k) {
        if (levels[k] == 0) continue;
        writer.put(code_of(static_cast<std::uint32_t>(k - before)));
        const Code magnitude = kOmega[static_cast<std::size_t>(std::abs(levels[k]))];
        writer.put({magnitude.bits << 1 | (levels[k] < 0 ? 1 : 0), magnitude.length + 1});
        before = k;
      }
    });
    return writer.finish();
  }

  void decode_elias(std::span<const Message> messages, double per_level, std::span<float> mean) const {
    std::fill(mean.begin(), mean.end(), 0.0f);
    for (std::size_t rank = 0; rank < messages.size(); ++rank) {
      BitReader reader(messages[rank].payload, rank);
      for_each_block(0, n_, [&](std::size_t block, std::size_t begin, std::size_t end) {
        const float scale = reader.scale();
        check_scale(scale, block, rank);
        const auto unit = static_cast<float>(scale * per_level);
        const std::uint32_t count = reader.number() - 1;
        if (count > end - begin)
          reader.fail("has " + std::to_string(count) + " levels in a block of " +
                      std::to_string(end - begin));
        std::size_t at = begin - 1;
        for (std::uint32_t k = 0; k < count; ++k) {
          at += reader.number();
          if (at >= end)
            reader.fail("has entry " + std::to_string(at) + ", expected below " + std::to_string(end));
          const bool negative = reader.bit() != 0;
          const std::uint32_t level = reader.number();
          if (level > static_cast<std::uint32_t>(steps_of(bits_)))
            reader.fail("has level " + std::to_string(level) + ", expected at most " +
                        std::to_string(steps_of(bits_)));
          const float value = unit * static_cast<float>(level);
          mean[at] = negative ? mean[at] - value : mean[at] + value;
        }
      });
      reader.finish();
    }
  }

  void decode_fixed(std::span<const Message> messages, double per_level, std::span<float> mean) {
    const std::size_t blocks = scales_.size();
    all_scales_.resize(messages.size() * blocks);
    for (std::size_t rank = 0; rank < messages.size(); ++rank)
      read_scales(messages[rank].payload, rank, std::span(all_scales_).subspan(rank * blocks, blocks));
    for (std::size_t first = 0; first < n_; first += kChunk) {
      const std::size_t length = std::min(kChunk, n_ - first);
      for (std::size_t rank = 0; rank < messages.size(); ++rank) {
        const auto packed =
            messages[rank].payload.subspan(4 * blocks + first * bits_ / 8, (length * bits_ + 7) / 8);
        kernels::unpack(packed, bits_, levels_);
        const std::span<float> part = mean.subspan(first, length);
        const std::span<float> values = rank == 0 ? part : std::span(values_).first(length);
        for_each_block(first, first + length, [&](std::size_t block, std::size_t begin, std::size_t end) {
          kernels::dequantize(levels_.data() + (begin - first),
                              static_cast<float>(all_scales_[rank * blocks + block] * per_level),
                              values.subspan(begin - first, end - begin));
        });
        if (rank > 0) kernels::add(values, part);
      }
    }
  }

  static void check_scale(float scale, std::size_t block, std::size_t rank) {
    if (!std::isfinite(scale) || scale < 0)
      throw Error("qsgd: scale " + std::to_string(block) + " of message from rank " + std::to_string(rank) +
                  " is " + number_text(scale) + ", expected at least 0 and finite");
  }

  static void read_scales(std::span<const std::byte> payload, std::size_t rank, std::span<float> scales) {
    if (scales.empty()) return;
    std::memcpy(scales.data(), payload.data(), scales.size_bytes());
    for (std::size_t block = 0; block < scales.size(); ++block) check_scale(scales[block], block, rank);
  }

  int bits_;
  bool l2_, elias_, shared_, finite_ = true;
  std::size_t n_, block_;
  std::vector<float> scales_;  // This rank's, or after round 0 with share-scale all ranks'.
  std::size_t max_bytes_;
  std::vector<std::int8_t> all_levels_;
  std::vector<float> all_scales_;
  kernels::Draws draws_;
  kernels::Levels levels_;
  std::array<float, kChunk> values_;
};

}  // namespace

std::unique_ptr<Compressor> make(const QsgdOptions& options, const Shape& shape) {
  check(QsgdOptions::kName, options);
  if (options.share_scale && options.coding == "elias")
    throw UsageError(
        "qsgd: coding=elias with share-scale=true, expected coding=fixed: Elias codes cannot be added");
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
  const auto entry = static_cast<std::size_t>(2 + omega(worst).length);
  const auto count =
      static_cast<std::size_t>(omega(static_cast<std::uint32_t>(std::min(block, n)) + 1).length);
  return (blocks * (32 + count) + n * entry + 7) / 8;
}

}  // namespace accordion
