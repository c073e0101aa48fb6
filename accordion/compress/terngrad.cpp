// TernGrad (Wen et al. 2017): with R the largest magnitude, an entry becomes its sign times R with
// probability |a| / R, else 0. First a is clipped to `clip` standard deviations: rare large entries would
// make R, and so the noise, large.
//
// message := scale: f32, code: u2[n]      -- 0, 1, 3 for 0, plus, minus; four a byte,
//                                            the first in the low bits
//
// With share-scale there are two rounds, and all ranks use the largest R:
//
// round 0 := scale: f32                     -- maximum
// round 1 := sign: i8[n], or i16[n]         -- sum, of -1, 0 and 1; i8 for up to 127 ranks
#include "accordion/compress/terngrad.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "accordion/kernels/dense.h"
#include "accordion/kernels/draws.h"
#include "accordion/kernels/levels.h"
#include "accordion/kernels/quantize.h"

namespace accordion {
namespace {

using kernels::kChunk;

class TernGrad final : public Compressor {
 public:
  TernGrad(const TernGradOptions& options, const Shape& shape) : options_(options), n_(shape.count()) {}

  bool wants_feedback() const override { return false; }

  int rounds() const override { return options_.share_scale ? 2 : 1; }

  Round round(int i, const Context& context) const override {
    if (!options_.share_scale) return {Pattern::kGather, Element::kByte, 4 + (n_ + 3) / 4};
    if (i == 0) return {Pattern::kMax, Element::kFloat, 4};
    const Element element = context.world <= 127 ? Element::kInt8 : Element::kInt16;
    return {Pattern::kSum, element, n_ * element_bytes(element)};
  }

  Encoded encode(int i, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    const Round round = this->round(i, context);
    std::span<const float> a = feedback.gradient;
    if (!feedback.residual.empty()) {
      std::copy(a.begin(), a.end(), feedback.next.begin());
      kernels::add(feedback.residual, feedback.next);
      a = feedback.next;
    }
    if (i == 0) {
      scale_ = measure(a);
      finite_ = std::isfinite(scale_);
      if (!finite_) scale_ = 0;  // A maximum over ranks must not spread it.
      std::memcpy(out.data(), &scale_, 4);
    }
    if (round.pattern != Pattern::kMax) quantize(context, a, round.element, out, feedback);
    return {.bytes = round.max_bytes, .finite = finite_};
  }

  void decode(int i, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    const std::size_t bytes = round(i, context).max_bytes;
    for (std::size_t rank = 0; rank < messages.size(); ++rank)
      if (messages[rank].payload.size() != bytes)
        throw Error("terngrad: payload" + from(rank) + " has " +
                    std::to_string(messages[rank].payload.size()) + " bytes, expected " +
                    std::to_string(bytes));
    if (!options_.share_scale) return decode_gathered(context, messages, mean);
    if (i == 0) {
      scale_ = scale_of(messages[0], 0);
      return;
    }
    const auto unit = static_cast<float>(static_cast<double>(scale_) / context.world);
    const std::byte* sums = messages[0].payload.data();
    if (bytes == n_) {
      const kernels::Scaled sum{reinterpret_cast<const std::int8_t*>(sums), unit};
      kernels::sum_levels({&sum, 1}, mean);
    } else {
      for (std::size_t k = 0; k < n_; ++k) mean[k] = unit * reinterpret_cast<const std::int16_t*>(sums)[k];
    }
  }

 private:
  static std::string from(std::size_t rank) { return " of message from rank " + std::to_string(rank); }

  // R = min(clip * deviation, largest magnitude); infinite or NaN if some a is.
  float measure(std::span<const float> a) const {
    if (a.empty()) return 0;
    const auto [sum, squares, largest] = kernels::moments(a, a[0]);
    const auto n = static_cast<double>(n_);
    const double limit = options_.clip * std::sqrt(std::max(squares - sum * sum / n, 0.0) / n);
    // Entries that are all alike have no deviation, and gradients near the end of the range too large a one
    // to tell.
    const bool clips = limit > 0 && limit < largest;
    return clips ? std::max(static_cast<float>(limit), std::numeric_limits<float>::denorm_min()) : largest;
  }

  // Draws signs chunk by chunk, and writes them as `element`s: codes after the scale (kByte), or integers to
  // add.
  void quantize(const Context& context, std::span<const float> a, Element element, std::span<std::byte> out,
                const Feedback& feedback) {
    const RandomKey key = context.private_key("terngrad");
    for (std::size_t first = 0; first < n_; first += kChunk) {
      const std::size_t length = std::min(kChunk, n_ - first);
      kernels::draw(key, first / kChunk, draws_);
      if (length < kChunk) levels_.fill(0);
      kernels::quantize(a.subspan(first, length), scale_, 1, draws_.data(), levels_.data());
      if (element == Element::kByte) kernels::pack(levels_, 2, out.subspan(4 + first / 4, (length + 3) / 4));
      if (element == Element::kInt8) std::memcpy(out.data() + first, levels_.data(), length);
      if (element == Element::kInt16)
        std::copy_n(levels_.data(), length, reinterpret_cast<std::int16_t*>(out.data()) + first);
      if (!feedback.residual.empty())
        kernels::add_levels({levels_.data(), -scale_}, feedback.next.subspan(first, length));
    }
  }

  float scale_of(const Message& message, std::size_t rank) const {
    float scale;
    std::memcpy(&scale, message.payload.data(), sizeof scale);
    if (!std::isfinite(scale) || scale < 0)
      throw Error("terngrad: scale" + from(rank) + " is " + number_text(scale) +
                  ", expected at least 0 and finite");
    return scale;
  }

  void decode_gathered(const Context& context, std::span<const Message> messages, std::span<float> mean) {
    rank_levels_.resize(messages.size());
    ranks_.clear();
    for (std::size_t rank = 0; rank < messages.size(); ++rank)
      ranks_.push_back(
          {rank_levels_[rank].data(),
           static_cast<float>(static_cast<double>(scale_of(messages[rank], rank)) / context.world)});
    for (std::size_t first = 0; first < n_; first += kChunk) {
      const std::span<float> part = mean.subspan(first, std::min(kChunk, n_ - first));
      for (std::size_t rank = 0; rank < messages.size(); ++rank)
        kernels::unpack(messages[rank].payload.subspan(4 + first / 4, (part.size() + 3) / 4), 2,
                        rank_levels_[rank]);
      kernels::sum_levels(ranks_, part);
    }
  }

  TernGradOptions options_;
  std::size_t n_;
  float scale_ = 0;  // From round 0 to round 1.
  bool finite_ = true;
  kernels::Draws draws_;
  kernels::Levels levels_;
  // To decode: of each rank.
  std::vector<kernels::Levels> rank_levels_;
  std::vector<kernels::Scaled> ranks_;
};

}  // namespace

std::unique_ptr<Compressor> make(const TernGradOptions& options, const Shape& shape) {
  check(TernGradOptions::kName, options);
  if (options.chunked && options.share_scale)
    throw UsageError("terngrad: chunked=true with share-scale=true, expected one of them");
  return std::make_unique<TernGrad>(options, shape);
}

std::size_t payload_bytes(const TernGradOptions& options, const Shape& shape, int world) {
  const std::size_t n = shape.count();
  if (!options.share_scale) return 4 + (n + 3) / 4;
  return 4 + (world <= 127 ? n : 2 * n);
}

}  // namespace accordion
