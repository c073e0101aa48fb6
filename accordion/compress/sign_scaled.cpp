// Scaled sign: the mean magnitude of a times its signs. With error feedback that is a contraction
// (Karimireddy et al. 2019): what is left, a - scale * sign(a), has |a|^2 - |a|_1^2 / n of a's squared norm.
//
// message := scale: f32, sign: bit[n]      -- 1 where a >= 0; little-endian in u32 words,
//                                             the last filled up with 0
#include "accordion/compress/sign_scaled.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include "accordion/kernels/signs.h"

namespace accordion {
namespace {

class SignScaled final : public Compressor {
 public:
  explicit SignScaled(const Shape& shape) : n_(shape.count()) {}

  bool wants_feedback() const override { return true; }

  Round round(int i, const Context& context) const override {
    return {Pattern::kGather, Element::kByte, bytes()};
  }

  // The scale is known only at the end, so the residual takes a second pass.
  Encoded encode(int i, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    auto* words = reinterpret_cast<std::uint32_t*>(out.data()) + 1;
    const kernels::Magnitudes magnitudes =
        kernels::measure_signs(feedback.gradient, feedback.residual, {words, kernels::sign_words(n_)});
    const bool finite = std::isfinite(magnitudes.largest);
    const float scale =
        finite && n_ > 0 ? static_cast<float>(magnitudes.sum / static_cast<double>(n_)) : 0.0f;
    std::memcpy(out.data(), &scale, sizeof scale);
    if (!feedback.residual.empty())
      kernels::subtract_signs(feedback.gradient, feedback.residual, scale, feedback.next);
    return {.bytes = bytes(), .finite = finite};
  }

  void decode(int i, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    signs_.clear();
    for (std::size_t rank = 0; rank < messages.size(); ++rank) {
      const std::span<const std::byte> payload = messages[rank].payload;
      if (payload.size() != bytes())
        throw Error("sign-scaled: payload" + from(rank) + " has " + std::to_string(payload.size()) +
                    " bytes, expected " + std::to_string(bytes()));
      float scale;
      std::memcpy(&scale, payload.data(), sizeof scale);
      if (!std::isfinite(scale) || scale < 0)
        throw Error("sign-scaled: scale" + from(rank) + " is " + number_text(scale) +
                    ", expected at least 0 and finite");
      signs_.push_back({reinterpret_cast<const std::uint32_t*>(payload.data()) + 1,
                        static_cast<float>(static_cast<double>(scale) / context.world)});
    }
    kernels::sum_signs(signs_, mean);
  }

 private:
  static std::string from(std::size_t rank) { return " of message from rank " + std::to_string(rank); }

  std::size_t bytes() const { return 4 + 4 * kernels::sign_words(n_); }

  std::size_t n_;
  std::vector<kernels::Signs> signs_;
};

}  // namespace

std::unique_ptr<Compressor> make(const SignScaledOptions& options, const Shape& shape) {
  return std::make_unique<SignScaled>(shape);
}

std::size_t payload_bytes(const SignScaledOptions& options, const Shape& shape, int world) {
  return 4 + 4 * kernels::sign_words(shape.count());
}

}  // namespace accordion
