// Products of a gradient, seen as a matrix, with thin ones: a streams from memory once, the thin ones stay in
// cache.
//
// a is rows x columns, row after row. Thin matrices p (rows x rank) and q (columns x rank) are stored column
// after column, so that a lower rank is a prefix. `reference` holds the plain loops.
#pragma once

#include <cstddef>
#include <span>

namespace accordion::kernels {

struct LowRank {
  std::size_t rows, columns, rank;
};

// a = gradient + residual and p = a q. Without a residual a is not written: p = gradient q. A value of a that
// is not finite leaves its row of p not finite. The rank is at least 1.
void project(LowRank size, std::span<const float> gradient, std::span<const float> residual,
             std::span<float> a, std::span<const float> q, std::span<float> p) noexcept;

// q = a^T p
void coefficients(LowRank size, std::span<const float> a, std::span<const float> p,
                  std::span<float> q) noexcept;

// a = p q^T. This and the next give the same bits on every instruction set: what all ranks decode must
// not depend on the machine. Products are added one after the other, each rounded first.
void expand(LowRank size, std::span<const float> p, std::span<const float> q, std::span<float> a) noexcept;

// a += p q^T
void expand_add(LowRank size, std::span<const float> p, std::span<const float> q,
                std::span<float> a) noexcept;

// q = a^T p, as coefficients() has it, and then a -= p q^T: what p spans is taken out of a.
void take_out(LowRank size, std::span<const float> p, std::span<float> q, std::span<float> a) noexcept;

namespace reference {
void project(LowRank size, std::span<const float> gradient, std::span<const float> residual,
             std::span<float> a, std::span<const float> q, std::span<float> p) noexcept;
void coefficients(LowRank size, std::span<const float> a, std::span<const float> p,
                  std::span<float> q) noexcept;
void expand(LowRank size, std::span<const float> p, std::span<const float> q, std::span<float> a) noexcept;
void expand_add(LowRank size, std::span<const float> p, std::span<const float> q,
                std::span<float> a) noexcept;
void take_out(LowRank size, std::span<const float> p, std::span<float> q, std::span<float> a) noexcept;
}  // namespace reference

}  // namespace accordion::kernels
