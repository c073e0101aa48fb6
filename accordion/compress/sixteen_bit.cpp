#include "accordion/compress/sixteen_bit.h"

#include <cstdint>
#include <string>

#include "accordion/base/error.h"

namespace accordion {
namespace {

class SixteenBit final : public Compressor {
 public:
  SixteenBit(const SixteenBitFormat& format, bool feedback, const Shape& shape)
      : format_(format), feedback_(feedback), n_(shape.count()) {}

  bool wants_feedback() const override { return feedback_; }

  Round round(int, const Context&) const override { return {Pattern::kSum, format_.element, 2 * n_}; }

  Encoded encode(int, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    auto* shares = reinterpret_cast<std::uint16_t*>(out.data());
    const kernels::Narrowed narrowed = format_.narrow(
        feedback.gradient, feedback.residual, static_cast<float>(context.world), {shares, n_}, feedback.next);
    return {.bytes = 2 * n_,
            .finite = narrowed.finite,
            .saturated = static_cast<std::uint32_t>(narrowed.saturated)};
  }

  void decode(int, const Context&, std::span<const Message> messages, std::span<float> mean) override {
    const std::span<const std::byte> sum = messages[0].payload;
    if (sum.size() != 2 * n_)
      throw Error(std::string(format_.name) + ": the sum of messages has " + std::to_string(sum.size()) +
                  " bytes, expected " + std::to_string(2 * n_));
    format_.widen({reinterpret_cast<const std::uint16_t*>(sum.data()), n_}, mean);
  }

 private:
  SixteenBitFormat format_;
  bool feedback_;
  std::size_t n_;
};

}  // namespace

std::unique_ptr<Compressor> make_sixteen_bit(const SixteenBitFormat& format, bool feedback,
                                             const Shape& shape) {
  return std::make_unique<SixteenBit>(format, feedback, shape);
}

}  // namespace accordion
