#include "accordion/kernels/draws.h"

// Highway compiles the part between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once per instruction set and
// picks the best one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "accordion/kernels/draws.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "accordion/kernels/draws_inl.h"

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

// No vectors, or vectors of a length the compiler does not know: the plain loop.
void Draw(RandomKey key, std::uint64_t chunk, Draws& draws) {
  reference::draw(key, chunk, draws);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

void Draw(RandomKey key, std::uint64_t chunk, Draws& draws) {
  const hn::CappedTag<std::uint64_t, kDrawLanes> d;
  using Lanes = Generators<hn::CappedTag<std::uint64_t, kDrawLanes> >;
  Lanes generators(Lanes::Keys(key), chunk, hn::Iota(d, 0));
  auto* out = reinterpret_cast<std::uint64_t*>(draws.data());
  for (std::size_t step = 0; step < kDrawSteps; ++step)
    for (std::size_t v = 0; v < Lanes::kVectors; ++v, out += Lanes::kLanes)
      hn::StoreU(generators.Next(v), d, out);
}

#endif

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace accordion::kernels {

HWY_EXPORT(Draw);

void draw(RandomKey key, std::uint64_t chunk, Draws& draws) noexcept {
  HWY_DYNAMIC_DISPATCH(Draw)(key, chunk, draws);
}

}  // namespace accordion::kernels
#endif
