// A text as parallel streams, for back-propagation through time that is cut after some steps.
//
// A text of n tokens has n - 1 pairs of an input and its target, the token that follows. They are cut into
// contiguous streams of one length, and stream s goes on in each window where it stopped in the one before:
//
//   a b c d e f g h   two streams, windows of two:   [a b] [c]      targets  [b c] [d]
//                                                    [d e] [f]               [e f] [g]
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "accordion/data/order.h"

namespace accordion {

// What becomes of pairs that do not fill a position of every stream. Training drops them, as streams are to
// be equally long; evaluation must see each pair once, and pads.
enum class Tail { kDrop, kPad };

// The target of a padded position: what torch's cross entropy ignores.
inline constexpr std::int64_t kNoTarget = -100;

class TextStreams {
 public:
  // Keeps a view of `text`, which has at least one pair for each stream.
  TextStreams(std::span<const std::int32_t> text, std::size_t count, Tail tail);

  std::size_t count() const { return count_; }
  std::size_t length() const { return length_; }  // in positions

  // A window: `streams.size()` rows of `positions.size()` tokens. A padded position has input 0 and target
  // kNoTarget.
  void read(Share streams, Share positions, std::span<std::int64_t> inputs,
            std::span<std::int64_t> targets) const;

 private:
  std::span<const std::int32_t> text_;
  std::size_t count_, length_;
};

}  // namespace accordion
