// bfloat16: every entry rounded to 8 significant bits, in the range of single precision.
//
// Each rank sends its share a / world, so that the sum over ranks is the mean.
//
// message := share: bf16[n]      -- added in single precision, rounded once
#include "accordion/compress/bf16.h"

#include <cstdint>

#include "accordion/kernels/halves.h"

namespace accordion {
namespace {

class Bf16 final : public Compressor {
 public:
  Bf16(const Bf16Options& options, const Shape& shape) : feedback_(options.feedback), n_(shape.count()) {}

  bool wants_feedback() const override { return feedback_; }

  Round round(int i, const Context& context) const override {
    return {Pattern::kSum, Element::kBfloat16, 2 * n_};
  }

  Encoded encode(int i, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    auto* shares = reinterpret_cast<std::uint16_t*>(out.data());
    const kernels::Narrowed narrowed = kernels::to_bfloat16s(
        feedback.gradient, feedback.residual, static_cast<float>(context.world), {shares, n_}, feedback.next);
    return {
        .bytes = 2 * n_, .count = static_cast<std::uint32_t>(narrowed.saturated), .finite = narrowed.finite};
  }

  void decode(int i, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    const std::span<const std::byte> sum = messages[0].payload;
    if (sum.size() != 2 * n_)
      throw Error("bf16: the sum of messages has " + std::to_string(sum.size()) + " bytes, expected " +
                  std::to_string(2 * n_));
    kernels::from_bfloat16s({reinterpret_cast<const std::uint16_t*>(sum.data()), n_}, mean);
  }

 private:
  bool feedback_;
  std::size_t n_;
};

}  // namespace

std::unique_ptr<Compressor> make(const Bf16Options& options, const Shape& shape) {
  check(Bf16Options::kName, options);
  return std::make_unique<Bf16>(options, shape);
}

std::size_t payload_bytes(const Bf16Options& options, const Shape& shape, int world) {
  return 2 * shape.count();
}

}  // namespace accordion
