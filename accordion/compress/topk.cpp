// TopK: send the k entries of largest magnitude, k = clamp(floor(keep * n), 1, n); of equal ones, the first.
//
// message := index: u32[k], value: f32[k]   -- gathered; ascending indices
//          | value: f32[n]                  -- added, if keep * world >= 1 or k = n; divided by world,
//                                              0 where not sent
#include "accordion/compress/topk.h"

#include "accordion/compress/k_largest.h"

namespace accordion {
namespace {

class TopK final : public KLargest {
 public:
  TopK(const TopKOptions& options, std::size_t n)
      : KLargest(TopKOptions::kName, {options.keep, options.published}, n) {}

 private:
  sparse::Cut choose(const Context&, const Candidates& candidates) const override {
    return sparse::largest({candidates.values}, candidates.k - candidates.swept.above);
  }
  sparse::Cut choose(const Context&, const kernels::Kth& kth, std::size_t k) const override {
    return {.sure = kth.value + 1, .maybe = kth.value, .take = k - kth.above};
  }
};

}  // namespace

std::unique_ptr<Compressor> make(const TopKOptions& options, const Shape& shape) {
  check(TopKOptions::kName, options);
  return std::make_unique<TopK>(options, shape.count());
}

std::size_t payload_bytes(const TopKOptions& options, const Shape& shape, int world) {
  return Kept{options.keep, options.published}.bytes(shape.count(), world);
}

}  // namespace accordion
