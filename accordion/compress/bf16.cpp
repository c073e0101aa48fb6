// bfloat16: every entry rounded to 8 significant bits, in the range of single precision.
//
// message := share: bf16[n]      -- added in single precision, rounded once
#include "accordion/compress/bf16.h"

#include "accordion/compress/sixteen_bit.h"

namespace accordion {

std::unique_ptr<Compressor> make(const Bf16Options& options, const Shape& shape) {
  check(Bf16Options::kName, options);
  return make_sixteen_bit(
      {Bf16Options::kName, Element::kBfloat16, kernels::to_bfloat16s, kernels::from_bfloat16s},
      options.feedback, shape);
}

std::size_t payload_bytes(const Bf16Options&, const Shape& shape, int) {
  return 2 * shape.count();
}

}  // namespace accordion
