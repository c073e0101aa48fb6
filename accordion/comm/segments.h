// How a large message is cut: both ends know its size, and that is all they need.
#pragma once

#include <algorithm>
#include <cstddef>

namespace accordion {

// `count` items in `pieces` parts whose lengths differ by one at most.
class Cut {
 public:
  Cut(std::size_t count, std::size_t pieces) : count_(count), pieces_(pieces) {}

  std::size_t pieces() const { return pieces_; }
  std::size_t begin(std::size_t i) const { return i * (count_ / pieces_) + std::min(i, count_ % pieces_); }
  std::size_t longest() const { return (count_ + pieces_ - 1) / pieces_; }

  auto part(auto items, std::size_t i) const { return items.subspan(begin(i), begin(i + 1) - begin(i)); }

 private:
  std::size_t count_, pieces_;
};

// In how many segments a message of this size travels: enough for one to be under way while another is worked on, and
// few enough that starting one costs little, on links of 100 Mbit/s as on those of 1 Gbit/s.
inline std::size_t segments_of(std::size_t bytes) {
  constexpr std::size_t kBytes = 49152, kMost = 16;
  return std::clamp<std::size_t>(bytes / kBytes, 1, kMost);
}

}  // namespace accordion
