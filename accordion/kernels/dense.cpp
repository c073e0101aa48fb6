#include "accordion/kernels/dense.h"

// Highway compiles the part between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once per instruction set and
// picks the best one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "accordion/kernels/dense.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void Add(const float* x, float* y, std::size_t n) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, y + i), hn::LoadU(d, x + i)), d, y + i);
  for (; i < n; ++i) y[i] += x[i];
}

void Scale(float* x, std::size_t n, float factor) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto by = hn::Set(d, factor);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), by), d, x + i);
  for (; i < n; ++i) x[i] *= factor;
}

double SumOfSquares(const float* x, std::size_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const std::size_t lanes = hn::Lanes(d);
  // Four sums, because one chain of additions waits on itself.
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto a = hn::PromoteTo(d, hn::LoadU(half, x + i));
    const auto b = hn::PromoteTo(d, hn::LoadU(half, x + i + lanes));
    const auto c = hn::PromoteTo(d, hn::LoadU(half, x + i + 2 * lanes));
    const auto e = hn::PromoteTo(d, hn::LoadU(half, x + i + 3 * lanes));
    s0 = hn::MulAdd(a, a, s0);
    s1 = hn::MulAdd(b, b, s1);
    s2 = hn::MulAdd(c, c, s2);
    s3 = hn::MulAdd(e, e, s3);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace accordion::kernels {

HWY_EXPORT(Add);
HWY_EXPORT(Scale);
HWY_EXPORT(SumOfSquares);

void add(std::span<const float> x, std::span<float> y) noexcept {
  HWY_DYNAMIC_DISPATCH(Add)(x.data(), y.data(), x.size());
}

void scale(std::span<float> x, float factor) noexcept {
  HWY_DYNAMIC_DISPATCH(Scale)(x.data(), x.size(), factor);
}

double sum_of_squares(std::span<const float> x) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumOfSquares)(x.data(), x.size());
}

}  // namespace accordion::kernels
#endif
