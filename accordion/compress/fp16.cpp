// Half precision: every entry rounded to 11 significant bits.
//
// Each rank sends its share a / world, so that the sum over ranks is the mean and stays in range. Magnitudes
// beyond 65504 are sent as 65504; `count` says how many there were.
//
// message := share: f16[n]      -- added in single precision, rounded once
#include "accordion/compress/fp16.h"

#include <cstdint>

#include "accordion/kernels/halves.h"

namespace accordion {
namespace {

class Fp16 final : public Compressor {
 public:
  Fp16(const Fp16Options& options, const Shape& shape) : feedback_(options.feedback), n_(shape.count()) {}

  bool wants_feedback() const override { return feedback_; }

  Round round(int i, const Context& context) const override {
    return {Pattern::kSum, Element::kHalf, 2 * n_};
  }

  Encoded encode(int i, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    auto* shares = reinterpret_cast<std::uint16_t*>(out.data());
    const kernels::Narrowed narrowed = kernels::to_halves(
        feedback.gradient, feedback.residual, static_cast<float>(context.world), {shares, n_}, feedback.next);
    return {
        .bytes = 2 * n_, .count = static_cast<std::uint32_t>(narrowed.saturated), .finite = narrowed.finite};
  }

  void decode(int i, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    const std::span<const std::byte> sum = messages[0].payload;
    if (sum.size() != 2 * n_)
      throw Error("fp16: the sum of messages has " + std::to_string(sum.size()) + " bytes, expected " +
                  std::to_string(2 * n_));
    kernels::from_halves({reinterpret_cast<const std::uint16_t*>(sum.data()), n_}, mean);
  }

 private:
  bool feedback_;
  std::size_t n_;
};

}  // namespace

std::unique_ptr<Compressor> make(const Fp16Options& options, const Shape& shape) {
  check(Fp16Options::kName, options);
  return std::make_unique<Fp16>(options, shape);
}

std::size_t payload_bytes(const Fp16Options& options, const Shape& shape, int world) {
  return 2 * shape.count();
}

}  // namespace accordion
