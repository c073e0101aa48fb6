// MSTopK: bisect between the mean and the largest magnitude for a threshold that k entries reach. What is
// missing after `samples` thresholds is a run of consecutive entries from between the two closest ones, at a
// random place.
//
// message := index: u32[k], value: f32[k]   -- gathered; ascending indices
//          | value: f32[n]                  -- added, if keep * world >= 1 or k = n; divided by world,
//                                              0 where not sent
//
// Thresholds are counted on the candidates only: outside their interval it is known on which side of k a
// count falls, and the interval's own ends count as thresholds tried.
#include "accordion/compress/mstopk.h"

#include "accordion/compress/k_largest.h"

namespace accordion {
namespace {

class MsTopK final : public KLargest {
 public:
  MsTopK(const MsTopKOptions& options, std::size_t n)
      : KLargest(MsTopKOptions::kName, {options.keep}, n), samples_(options.samples) {}

 private:
  sparse::Cut choose(const Context& context, const Candidates& candidates) const override {
    const auto& swept = candidates.swept;
    const auto values = candidates.values;
    const auto low = candidates.low, high = candidates.high;
    const std::size_t n = candidates.n, k = candidates.k;
    const std::size_t most = swept.above + swept.picked;
    // Beyond the interval, only the side of k matters.
    const auto count = [&](kernels::Magnitude threshold) {
      if (threshold >= high) return swept.above;
      if (threshold <= low) return most;
      return swept.above + kernels::count_at_least({values}, threshold);
    };
    if (swept.above == k) return {.sure = high, .maybe = high};
    if (most == k) return {.sure = low, .maybe = low};

    std::size_t fewer = swept.above,
                more = most;  // Entries from `sure` up: below k. From `maybe` up: above k.
    kernels::Magnitude sure = high, maybe = low;
    const double mean = swept.total / static_cast<double>(n);
    double base = mean, span = std::bit_cast<float>(swept.largest) - mean;
    if (count(kernels::magnitude(static_cast<float>(mean))) < k) base = 0, span = mean;
    double from = 0, to = 1;
    for (int i = 0; i < samples_; ++i) {
      const double ratio = (from + to) / 2;
      const auto threshold = kernels::magnitude(static_cast<float>(base + ratio * span));
      const std::size_t reached = count(threshold);
      if (reached == k) return {.sure = threshold, .maybe = threshold};
      if (reached < k) {
        to = ratio;
        if (reached > fewer) fewer = reached, sure = threshold;
      } else {
        from = ratio;
        if (reached < more) more = reached, maybe = threshold;
      }
    }
    return fill_up(context, sure, maybe, k - fewer, more - fewer);
  }

  sparse::Cut choose(const Context& context, const kernels::Kth& kth, std::size_t k) const override {
    return fill_up(context, kth.value + 1, kth.value, k - kth.above, kth.equal);
  }

  // Takes `missing` consecutive ones of the `available` entries in [maybe, sure).
  static sparse::Cut fill_up(const Context& context, kernels::Magnitude sure, kernels::Magnitude maybe,
                             std::size_t missing, std::size_t available) {
    const auto places = static_cast<std::uint32_t>(available - missing + 1);
    RandomStream random(context.private_key("mstopk"));
    return {.sure = sure, .maybe = maybe, .skip = random.below(places), .take = missing};
  }

  int samples_;
};

}  // namespace

std::unique_ptr<Compressor> make(const MsTopKOptions& options, const Shape& shape) {
  check(MsTopKOptions::kName, options);
  return std::make_unique<MsTopK>(options, shape.count());
}

std::size_t payload_bytes(const MsTopKOptions& options, const Shape& shape, int world) {
  return Kept{options.keep}.bytes(shape.count(), world);
}

}  // namespace accordion
