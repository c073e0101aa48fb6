// Half precision: every entry rounded to 11 significant bits; the largest magnitude is 65504.
//
// message := share: f16[n]      -- added in single precision, rounded once
#include "accordion/compress/fp16.h"

#include "accordion/compress/sixteen_bit.h"

namespace accordion {

std::unique_ptr<Compressor> make(const Fp16Options& options, const Shape& shape) {
  check(Fp16Options::kName, options);
  return make_sixteen_bit({Fp16Options::kName, Element::kHalf, kernels::to_halves, kernels::from_halves},
                          options.feedback, shape);
}

std::size_t payload_bytes(const Fp16Options&, const Shape& shape, int) {
  return 2 * shape.count();
}

}  // namespace accordion
