#include <algorithm>

#include "accordion/kernels/select.h"

namespace accordion::kernels::reference {
namespace {

void pick(std::size_t i, float value, Room room, Swept& swept) {
  if (swept.picked < room.indices.size()) {
    room.indices[swept.picked] = static_cast<std::uint32_t>(i);
    room.values[swept.picked] = value;
  }
  ++swept.picked;
}

Magnitude note(float value, Swept& swept) {
  swept.largest = std::max(swept.largest, magnitude(value));
  swept.total += std::bit_cast<float>(magnitude(value));
  return magnitude(value);
}

}  // namespace

Swept sweep(Sum a, Magnitude low, std::span<float> next, Room room) noexcept {
  Swept swept;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool picked = note(a[i], swept) >= low;
    if (picked) pick(i, a[i], room, swept);
    if (!next.empty()) next[i] = picked ? 0 : a[i];
  }
  return swept;
}

Swept sweep_split(Sum a, Magnitude low, Magnitude high, float divisor, std::span<float> next,
                  std::span<float> out, Room room) noexcept {
  Swept swept;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Magnitude size = note(a[i], swept);
    const bool above = size >= high;
    swept.above += above;
    if (size >= low && !above) pick(i, a[i], room, swept);
    out[i] = above ? a[i] / divisor : 0;
    if (!next.empty()) next[i] = above ? 0 : a[i];
  }
  return swept;
}

Swept sweep_momentum(const MomentumUpdate& update, Magnitude low, std::span<float> next_u,
                     std::span<float> next_v, Room room) noexcept {
  Swept swept;
  for (std::size_t i = 0; i < next_u.size(); ++i) {
    const float v = update.next_v(i);
    next_u[i] = update.next_u(i);
    if (!next_v.empty()) next_v[i] = v;
    if (note(v, swept) >= low) pick(i, v, room, swept);
  }
  return swept;
}

std::size_t count_at_least(Sum a, Magnitude low) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += magnitude(a[i]) >= low;
  return count;
}

std::size_t part(Room entries, Magnitude sure, Room taken) noexcept {
  std::size_t left = 0, at = 0;
  for (std::size_t i = 0; i < entries.indices.size(); ++i) {
    const std::uint32_t index = entries.indices[i];
    const float value = entries.values[i];
    if (magnitude(value) < sure) {
      entries.indices[left] = index;
      entries.values[left++] = value;
    } else if (at < taken.indices.size()) {
      taken.indices[at] = index;
      taken.values[at++] = value;
    }
  }
  return left;
}

}  // namespace accordion::kernels::reference
