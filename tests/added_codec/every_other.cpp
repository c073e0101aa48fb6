// message := value: f32[(n + stride - 1) / stride]   -- gathered; of entries step % stride, then every stride-th;
//                                                       filled up with 0
#include "added_codec/every_other.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "accordion/base/error.h"

namespace accordion {
namespace {

std::size_t sent_of(const EveryOtherOptions& options, std::size_t n) {
  const auto stride = static_cast<std::size_t>(options.stride);
  return (n + stride - 1) / stride;
}

class EveryOther final : public Compressor {
 public:
  EveryOther(const EveryOtherOptions& options, std::size_t n)
      : stride_(static_cast<std::size_t>(options.stride)), n_(n), sent_(sent_of(options, n)) {}

  bool wants_feedback() const override { return true; }

  Round round(int, const Context&) const override {
    return {Pattern::kGather, Element::kByte, sent_ * sizeof(float)};
  }

  Encoded encode(int, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    std::fill(out.begin(), out.end(), std::byte{0});
    bool finite = true;
    for (std::size_t i = 0; i < n_; ++i) {
      const float a = feedback.gradient[i] + (feedback.residual.empty() ? 0 : feedback.residual[i]);
      finite = finite && std::isfinite(a);
      const bool sends = i % stride_ == context.step % stride_;
      if (sends) std::memcpy(out.data() + i / stride_ * sizeof a, &a, sizeof a);
      if (!feedback.next.empty()) feedback.next[i] = sends ? 0 : a;
    }
    return {.bytes = sent_ * sizeof(float), .finite = finite};
  }

  void decode(int, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    std::fill(mean.begin(), mean.end(), 0.0f);
    for (const Message& message : messages) {
      if (message.payload.size() != sent_ * sizeof(float))
        throw Error("every-other: " + std::to_string(message.payload.size()) + " bytes, expected " +
                    std::to_string(sent_ * sizeof(float)));
      for (std::size_t i = context.step % stride_; i < n_; i += stride_) {
        float value;
        std::memcpy(&value, message.payload.data() + i / stride_ * sizeof value, sizeof value);
        mean[i] += value / static_cast<float>(context.world);
      }
    }
  }

 private:
  std::size_t stride_, n_, sent_;
};

}  // namespace

std::unique_ptr<Compressor> make(const EveryOtherOptions& options, const Shape& shape) {
  check(EveryOtherOptions::kName, options);
  return std::make_unique<EveryOther>(options, shape.count());
}

std::size_t payload_bytes(const EveryOtherOptions& options, const Shape& shape, int) {
  return sent_of(options, shape.count()) * sizeof(float);
}

}  // namespace accordion
