// Loops that pick entries by magnitude. `reference` holds the plain loops they must match.
//
// Magnitudes are compared as integers: without its sign bit, a float's bits order as its magnitude does.
// Infinity and NaN come last, so the largest magnitude also tells whether all entries were finite.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace accordion::kernels {

using Magnitude = std::uint32_t;
inline constexpr Magnitude kInfinite = 0x7f800000;
inline constexpr Magnitude kBeyondAll = 0x7fffffff;  // Nothing but one NaN reaches it.

inline Magnitude magnitude(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7fffffff;
}

// a = x + y, or x alone where y is empty.
struct Sum {
  std::span<const float> x, y = {};

  std::size_t size() const { return x.size(); }
  float operator[](std::size_t i) const { return y.empty() ? x[i] : x[i] + y[i]; }
};

// Where a sweep puts the entries it picks, in ascending order. What does not fit is counted only.
struct Room {
  std::span<std::uint32_t> indices;
  std::span<float> values;
};

struct Swept {
  std::size_t picked = 0;  // Entries of the interval, whether there was room or not.
  std::size_t above = 0;   // Entries above the interval.
  Magnitude largest = 0;
  double total = 0;  // Sum of magnitudes.

  bool finite() const { return largest < kInfinite; }
  bool fits(const Room& room) const { return picked <= room.indices.size(); }
};

// Picks |a| >= low. next, unless empty, becomes a, with 0 where an entry was picked.
Swept sweep(Sum a, Magnitude low, std::span<float> next, Room room) noexcept;

// Splits a in three: from `high` up, entries go to out, divided by `divisor`; below `low`, to next; those
// between are picked and also left in next. Elsewhere out and next (unless empty) become 0.
Swept sweep_split(Sum a, Magnitude low, Magnitude high, float divisor, std::span<float> next,
                  std::span<float> out, Room room) noexcept;

// DGC's update: the momentum u and the accumulator v take in a gradient. v empty: taken as zeros.
struct MomentumUpdate {
  std::span<const float> gradient, u, v;
  float factor = 0;
  bool nesterov = false;

  float next_u(std::size_t i) const {
    return nesterov ? factor * (u[i] + gradient[i]) : factor * u[i] + gradient[i];
  }
  float next_v(std::size_t i) const {
    const float sum = nesterov ? next_u(i) + gradient[i] : next_u(i);
    return v.empty() ? sum : v[i] + sum;
  }
};

// Writes the updated u and v (unless next_v is empty) and picks |v| >= low.
Swept sweep_momentum(const MomentumUpdate& update, Magnitude low, std::span<float> next_u,
                     std::span<float> next_v, Room room) noexcept;

std::size_t count_at_least(Sum a, Magnitude low) noexcept;

// Parts entries in two, in order: from `sure` up they are copied to `taken`, as far as there is room, and the
// others move to the front. Returns how many these are.
std::size_t part(Room entries, Magnitude sure, Room taken) noexcept;

namespace reference {
Swept sweep(Sum a, Magnitude low, std::span<float> next, Room room) noexcept;
Swept sweep_split(Sum a, Magnitude low, Magnitude high, float divisor, std::span<float> next,
                  std::span<float> out, Room room) noexcept;
Swept sweep_momentum(const MomentumUpdate& update, Magnitude low, std::span<float> next_u,
                     std::span<float> next_v, Room room) noexcept;
std::size_t count_at_least(Sum a, Magnitude low) noexcept;
std::size_t part(Room entries, Magnitude sure, Room taken) noexcept;
}  // namespace reference

}  // namespace accordion::kernels
