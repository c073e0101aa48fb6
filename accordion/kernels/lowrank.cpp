#include "accordion/kernels/lowrank.h"

// The loops below keep arrays of vectors, which vectors of a length unknown at compile time do not allow.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "accordion/kernels/lowrank.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace accordion::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

// Columns of the thin matrices taken at once: as many sums fit in registers.
constexpr std::size_t kGroup = 8;
// Columns of a taken at once: kGroup columns of q, this long, stay in the second-level cache. Shorter ones
// would stay in the first, but memory is read faster in long runs.
constexpr std::size_t kWide = 16384;
// While this many values of q stay in the first-level cache, taking several rows of a at once saves nothing,
// and memory is read faster one row after the other.
constexpr std::size_t kNear = 2048;
// Values of a that stay in the second-level cache from one look at them to the next.
constexpr std::size_t kCached = std::size_t{1} << 17;

// A block: some columns of a, with the thin columns of one group.
struct Block {
  std::size_t rows, width, stride;  // stride: from one row of a, or column of q, to the next.
  bool several;                     // Rows of a at once.
};

// Whether masked loads and stores leave memory beyond the mask alone; else they may touch it.
#if HWY_TARGET <= HWY_AVX2
constexpr bool kMasks = true;
#else
constexpr bool kMasks = false;
#endif

// A whole vector, or the `left` values at a row's end: lanes beyond them read as zero and are not written.
template <bool kPart>
HWY_INLINE Vec Load(const float* x, std::size_t left) {
  const Tag d;
  if constexpr (!kPart) return hn::LoadU(d, x);
  if constexpr (kMasks) return hn::MaskedLoad(hn::FirstN(d, left), d, x);
  HWY_ALIGN float lanes[hn::MaxLanes(Tag())] = {};
  std::copy_n(x, left, lanes);
  return hn::Load(d, lanes);
}

template <bool kPart>
HWY_INLINE void Store(Vec v, float* x, std::size_t left) {
  const Tag d;
  if constexpr (!kPart) {
    hn::StoreU(v, d, x);
  } else if constexpr (kMasks) {
    hn::BlendedStore(v, hn::FirstN(d, left), d, x);
  } else {
    HWY_ALIGN float lanes[hn::MaxLanes(Tag())];
    hn::Store(v, d, lanes);
    std::copy_n(lanes, left, x);
  }
}

// In an order of our own: that of Highway's sum of lanes changes from version to version, and results with it.
HWY_INLINE float SumOfHalves(Vec v) {
  const Tag d;
  HWY_ALIGN float lanes[hn::MaxLanes(Tag())];
  hn::Store(v, d, lanes);
  for (std::size_t half = hn::Lanes(d) / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

// p += (gradient + residual) q for one block; a = gradient + residual.
template <int kRank>
struct Project {
  template <int kRows, bool kPart>
  static HWY_INLINE void Step(const Block& b, std::size_t left, const float* gradient, const float* residual,
                              float* a, const float* q, Vec* sums) {
    Vec values[kRows];
    for (int i = 0; i < kRows; ++i) {
      values[i] = Load<kPart>(gradient + i * b.stride, left);
      if (residual != nullptr) values[i] = hn::Add(values[i], Load<kPart>(residual + i * b.stride, left));
    }
    if (residual != nullptr)
      for (int i = 0; i < kRows; ++i) Store<kPart>(values[i], a + i * b.stride, left);
    for (int j = 0; j < kRank; ++j) {
      const Vec column = Load<kPart>(q + j * b.stride, left);
      for (int i = 0; i < kRows; ++i)
        sums[i * kRank + j] = hn::MulAdd(values[i], column, sums[i * kRank + j]);
    }
  }

  template <int kRows>
  static HWY_INLINE void Rows(const Block& b, std::size_t row, const float* gradient, const float* residual,
                              float* a, const float* q, float* p) {
    const Tag d;
    const std::size_t lanes = hn::Lanes(d), at = row * b.stride;
    gradient += at;
    if (residual != nullptr) residual += at, a += at;
    Vec sums[kRows * kRank];
    for (Vec& sum : sums) sum = hn::Zero(d);
    std::size_t c = 0;
    if (residual == nullptr) {
      for (; c + lanes <= b.width; c += lanes)
        Step<kRows, false>(b, lanes, gradient + c, nullptr, nullptr, q + c, sums);
      if (c < b.width) Step<kRows, true>(b, b.width - c, gradient + c, nullptr, nullptr, q + c, sums);
    } else {
      for (; c + lanes <= b.width; c += lanes)
        Step<kRows, false>(b, lanes, gradient + c, residual + c, a + c, q + c, sums);
      if (c < b.width) Step<kRows, true>(b, b.width - c, gradient + c, residual + c, a + c, q + c, sums);
    }
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kRank; ++j) p[j * b.rows + row + i] += SumOfHalves(sums[i * kRank + j]);
  }

  static void Run(const Block& b, const float* gradient, const float* residual, float* a, const float* q,
                  float* p) {
    constexpr int kRows = kRank <= 4 ? 3 : kRank <= 6 ? 2 : 1;  // As many as there are registers for.
    std::size_t row = 0;
    if (b.several)
      for (; row + kRows <= b.rows; row += kRows) Rows<kRows>(b, row, gradient, residual, a, q, p);
    for (; row < b.rows; ++row) Rows<1>(b, row, gradient, residual, a, q, p);
  }
};

// q += a^T p for one block.
template <int kRank>
struct Coefficients {
  template <int kRows, bool kPart>
  static HWY_INLINE void Step(const Block& b, std::size_t left, const float* a, const Vec* factors,
                              float* q) {
    Vec values[kRows];
    for (int i = 0; i < kRows; ++i) values[i] = Load<kPart>(a + i * b.stride, left);
    for (int j = 0; j < kRank; ++j) {
      Vec sum = Load<kPart>(q + j * b.stride, left);
      for (int i = 0; i < kRows; ++i) sum = hn::MulAdd(factors[i * kRank + j], values[i], sum);
      Store<kPart>(sum, q + j * b.stride, left);
    }
  }

  template <int kRows>
  static HWY_INLINE void Rows(const Block& b, std::size_t row, const float* a, const float* p, float* q) {
    const Tag d;
    const std::size_t lanes = hn::Lanes(d);
    Vec factors[kRows * kRank];
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kRank; ++j) factors[i * kRank + j] = hn::Set(d, p[j * b.rows + row + i]);
    a += row * b.stride;
    std::size_t c = 0;
    for (; c + lanes <= b.width; c += lanes) Step<kRows, false>(b, lanes, a + c, factors, q + c);
    if (c < b.width) Step<kRows, true>(b, b.width - c, a + c, factors, q + c);
  }

  static void Run(const Block& b, const float* a, const float* p, float* q) {
    constexpr int kRows = kRank <= 4 ? 8 : 4;  // Many, because each pass over them reads and writes all of q.
    std::size_t row = 0;
    if (b.several)
      for (; row + kRows <= b.rows; row += kRows) Rows<kRows>(b, row, a, p, q);
    for (; row < b.rows; ++row) Rows<1>(b, row, a, p, q);
  }
};

enum class Update { kSet, kAdd, kSubtract };

// a = p q^T, a += p q^T or a -= p q^T for one block. Every entry sees the same operations in the same order,
// wherever it lies, and each product is rounded before it is added, whether or not the machine could fuse the
// two: so ranks agree on every bit.
template <Update kUpdate>
struct Expand {
  template <int kRank>
  struct For {
    template <int kRows, bool kPart>
    static HWY_INLINE void Step(const Block& b, std::size_t left, const Vec* factors, const float* q,
                                float* a) {
      Vec values[kRows];
      for (int i = 0; i < kRows; ++i)
        values[i] = kUpdate == Update::kSet ? hn::Zero(Tag()) : Load<kPart>(a + i * b.stride, left);
      for (int j = 0; j < kRank; ++j) {
        const Vec column = Load<kPart>(q + j * b.stride, left);
        for (int i = 0; i < kRows; ++i)
          values[i] = hn::Add(values[i], hn::Mul(factors[i * kRank + j], column));
      }
      for (int i = 0; i < kRows; ++i) Store<kPart>(values[i], a + i * b.stride, left);
    }

    template <int kRows>
    static HWY_INLINE void Rows(const Block& b, std::size_t row, const float* p, const float* q, float* a) {
      const Tag d;
      const std::size_t lanes = hn::Lanes(d);
      const float sign = kUpdate == Update::kSubtract ? -1.0f : 1.0f;
      Vec factors[kRows * kRank];
      for (int i = 0; i < kRows; ++i)
        for (int j = 0; j < kRank; ++j) factors[i * kRank + j] = hn::Set(d, sign * p[j * b.rows + row + i]);
      a += row * b.stride;
      std::size_t c = 0;
      for (; c + lanes <= b.width; c += lanes) Step<kRows, false>(b, lanes, factors, q + c, a + c);
      if (c < b.width) Step<kRows, true>(b, b.width - c, factors, q + c, a + c);
    }

    static void Run(const Block& b, const float* p, const float* q, float* a) {
      constexpr int kRows = 4;
      std::size_t row = 0;
      if (b.several)
        for (; row + kRows <= b.rows; row += kRows) Rows<kRows>(b, row, p, q, a);
      for (; row < b.rows; ++row) Rows<1>(b, row, p, q, a);
    }
  };
};

template <template <int> class Loop, class... Arguments>
void ForRank(std::size_t rank, Arguments... arguments) {
  switch (rank) {
    case 1:
      return Loop<1>::Run(arguments...);
    case 2:
      return Loop<2>::Run(arguments...);
    case 3:
      return Loop<3>::Run(arguments...);
    case 4:
      return Loop<4>::Run(arguments...);
    case 5:
      return Loop<5>::Run(arguments...);
    case 6:
      return Loop<6>::Run(arguments...);
    case 7:
      return Loop<7>::Run(arguments...);
    default:
      return Loop<8>::Run(arguments...);
  }
}

// Calls visit(block, c, j, count) for every block of columns from c and every group of thin columns j .. j +
// count - 1.
template <class Visit>
void ForBlocks(LowRank size, Visit visit) {
  for (std::size_t c = 0; c < size.columns; c += kWide)
    for (std::size_t j = 0; j < size.rank; j += kGroup) {
      const std::size_t width = std::min(kWide, size.columns - c), count = std::min(kGroup, size.rank - j);
      visit(Block{size.rows, width, size.columns, width * count > kNear}, c, j, count);
    }
}

void ProjectAll(LowRank size, const float* gradient, const float* residual, float* a, const float* q,
                float* p) {
  std::fill_n(p, size.rows * size.rank, 0.0f);
  ForBlocks(size, [&](Block b, std::size_t c, std::size_t j, std::size_t count) {
    const float* columns = q + j * size.columns + c;
    float* sums = p + j * size.rows;
    if (residual == nullptr) {
      ForRank<Project>(count, b, gradient + c, nullptr, nullptr, columns, sums);
    } else if (j == 0) {
      ForRank<Project>(count, b, gradient + c, residual + c, a + c, columns, sums);
    } else {
      ForRank<Project>(count, b, a + c, nullptr, nullptr, columns, sums);
    }
  });
}

void CoefficientsAll(LowRank size, const float* a, const float* p, float* q) {
  std::fill_n(q, size.columns * size.rank, 0.0f);
  ForBlocks(size, [&](Block b, std::size_t c, std::size_t j, std::size_t count) {
    ForRank<Coefficients>(count, b, a + c, p + j * size.rows, q + j * size.columns + c);
  });
}

void ExpandAll(LowRank size, const float* p, const float* q, float* a) {
  ForBlocks(size, [&](Block b, std::size_t c, std::size_t j, std::size_t count) {
    const float *factors = p + j * size.rows, *columns = q + j * size.columns + c;
    if (j == 0) {
      ForRank<Expand<Update::kSet>::For>(count, b, factors, columns, a + c);
    } else {
      ForRank<Expand<Update::kAdd>::For>(count, b, factors, columns, a + c);
    }
  });
}

void ExpandAddAll(LowRank size, const float* p, const float* q, float* a) {
  ForBlocks(size, [&](Block b, std::size_t c, std::size_t j, std::size_t count) {
    ForRank<Expand<Update::kAdd>::For>(count, b, p + j * size.rows, q + j * size.columns + c, a + c);
  });
}

// Some columns after the other, as many as stay in the cache: from memory a is read once, and written once.
void TakeOutAll(LowRank size, const float* p, float* q, float* a) {
  std::fill_n(q, size.columns * size.rank, 0.0f);
  const std::size_t fit = kCached / std::max<std::size_t>(size.rows, 1);
  const std::size_t wide = std::clamp<std::size_t>(fit / 64 * 64, 64, kWide);
  for (std::size_t c = 0; c < size.columns; c += wide) {
    const Block b{size.rows, std::min(wide, size.columns - c), size.columns, true};
    for (std::size_t j = 0; j < size.rank; j += kGroup)
      ForRank<Coefficients>(std::min(kGroup, size.rank - j), b, a + c, p + j * size.rows,
                            q + j * size.columns + c);
    for (std::size_t j = 0; j < size.rank; j += kGroup)
      ForRank<Expand<Update::kSubtract>::For>(std::min(kGroup, size.rank - j), b, p + j * size.rows,
                                              q + j * size.columns + c, a + c);
  }
}

}  // namespace accordion::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace accordion::kernels {

HWY_EXPORT(ProjectAll);
HWY_EXPORT(CoefficientsAll);
HWY_EXPORT(ExpandAll);
HWY_EXPORT(ExpandAddAll);
HWY_EXPORT(TakeOutAll);

void project(LowRank size, std::span<const float> gradient, std::span<const float> residual,
             std::span<float> a, std::span<const float> q, std::span<float> p) noexcept {
  HWY_DYNAMIC_DISPATCH(ProjectAll)
  (size, gradient.data(), residual.empty() ? nullptr : residual.data(), a.data(), q.data(), p.data());
}

void coefficients(LowRank size, std::span<const float> a, std::span<const float> p,
                  std::span<float> q) noexcept {
  HWY_DYNAMIC_DISPATCH(CoefficientsAll)(size, a.data(), p.data(), q.data());
}

void expand(LowRank size, std::span<const float> p, std::span<const float> q, std::span<float> a) noexcept {
  if (size.rank == 0) std::fill(a.begin(), a.end(), 0.0f);
  HWY_DYNAMIC_DISPATCH(ExpandAll)(size, p.data(), q.data(), a.data());
}

void expand_add(LowRank size, std::span<const float> p, std::span<const float> q,
                std::span<float> a) noexcept {
  HWY_DYNAMIC_DISPATCH(ExpandAddAll)(size, p.data(), q.data(), a.data());
}

void take_out(LowRank size, std::span<const float> p, std::span<float> q, std::span<float> a) noexcept {
  HWY_DYNAMIC_DISPATCH(TakeOutAll)(size, p.data(), q.data(), a.data());
}

}  // namespace accordion::kernels
#endif
