// Hard threshold (Rethinking gradient sparsification as total error minimization): send every entry of
// magnitude at least lambda, however many there are. With more than half of them, the dense form of the same
// tensor is shorter.
//
// message := index: u32[count], value: f32[count]   -- ascending indices
//          | value: f32[n]                          -- flag kDense: count > n / 2; 0 where not sent
#include "accordion/compress/threshold.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "accordion/compress/sparse.h"

namespace accordion {
namespace {

// The magnitude of the least float that reaches lambda.
kernels::Magnitude least_sent(double lambda) {
  auto least = static_cast<float>(lambda);
  if (least < lambda) least = std::nextafter(least, std::numeric_limits<float>::infinity());
  return kernels::magnitude(least);
}

class Threshold final : public Compressor {
 public:
  Threshold(double lambda, std::size_t n) : least_(least_sent(lambda)), n_(n) {}

  bool wants_feedback() const override { return true; }

  Round round(int, const Context&) const override {
    return {Pattern::kGather, Element::kByte, n_ * sizeof(float), /*fixed=*/false};
  }

  Encoded encode(int, const Context&, const Feedback& feedback, std::span<std::byte> out) override {
    const kernels::Sum a{feedback.gradient, feedback.residual};
    // As if there were n / 2 entries; the values close up when their number is known.
    const kernels::Room room = sparse::lay_out(out, n_ / 2);
    const kernels::Swept swept = kernels::sweep(a, least_, feedback.next, room);
    if (!swept.finite()) return {.finite = false};
    if (!swept.fits(room)) {
      kernels::sweep_split(a, least_, least_, 1, {}, {reinterpret_cast<float*>(out.data()), n_}, {});
      return {n_ * sizeof(float), static_cast<std::uint32_t>(n_), sparse::kDense};
    }
    const std::size_t count = swept.picked;
    if (count > 0)
      std::memmove(sparse::lay_out(out, count).values.data(), room.values.data(), count * sizeof(float));
    return {count * sparse::kEntryBytes, static_cast<std::uint32_t>(count)};
  }

  void decode(int, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    decoder_.decode(ThresholdOptions::kName, context, messages, mean);
  }

 private:
  kernels::Magnitude least_;
  std::size_t n_;
  sparse::Decoder decoder_;
};

}  // namespace

std::unique_ptr<Compressor> make(const ThresholdOptions& options, const Shape& shape) {
  check(ThresholdOptions::kName, options);
  return std::make_unique<Threshold>(options.lambda, shape.count());
}

std::size_t payload_bytes(const ThresholdOptions&, const Shape& shape, int) {
  return shape.count() * sizeof(float);
}

}  // namespace accordion
