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

inline constexpr std::size_t kLeastSegment = 49152;

// Of longer messages the number of segments depends on the link.
inline bool is_long(std::size_t bytes) {
  return bytes >= 4 * kLeastSegment;
}

// In how many segments a message of this size travels over links of this pace: at least two, so that one is under way while
// another is worked on, and few, because each costs two processes some wake-ups. But no longer than some time on the link: when
// ranks turn to their next peers, links lie idle for as long as ranks are apart, which is a segment or two.
inline std::size_t segments_of(std::size_t bytes, double bytes_per_second) {
  constexpr double kSeconds = 0.002;
  if (!is_long(bytes)) return bytes < 2 * kLeastSegment ? 1 : 2;
  const double longest = std::max<double>(kLeastSegment, kSeconds * bytes_per_second);
  return std::max<std::size_t>(2, static_cast<std::size_t>(static_cast<double>(bytes) / longest));
}

// In how many rounds over all peers the segments of a sum go, when every rank owns a block of so many bytes. In one round a
// rank has few turns from peer to peer, each of which may leave its links idle. But one that is late stays late until the
// next turn, and until then two ranks share a link: in long blocks that costs more than the turns, as long as there are few.
inline std::size_t rounds_of(std::size_t segments, std::size_t block_bytes, std::size_t ranks) {
  constexpr std::size_t kLongBlock = std::size_t{2} << 20, kFewRanks = 4;
  return block_bytes >= kLongBlock && ranks <= kFewRanks ? segments : 1;
}

// From rank to rank along a chain each waits for a segment of the one before.
inline std::size_t chain_segments_of(std::size_t bytes) {
  return std::clamp<std::size_t>(bytes / kLeastSegment, 1, 16);
}

}  // namespace accordion
