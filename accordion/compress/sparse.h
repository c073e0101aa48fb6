// What codecs that send some entries of a tensor share: the message, and the choice of entries.
//
// message := index: u32[count], value: f32[count]   -- ascending indices
//          | value: f32[n]                          -- if the flag kDense is set
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "accordion/compress/compressor.h"
#include "accordion/kernels/select.h"

namespace accordion::sparse {

inline constexpr std::uint8_t kDense = 1;
inline constexpr std::size_t kEntryBytes = sizeof(std::uint32_t) + sizeof(float);

// The two arrays of a message of `count` entries.
kernels::Room lay_out(std::span<std::byte> out, std::size_t count);

// A message that decodes to zeros, for a step that will not count.
void write_zeros(std::span<std::byte> out, std::size_t count);

// Takes all entries from `sure` up and, of those in [maybe, sure), in order, `take` after the first `skip`.
struct Cut {
  kernels::Magnitude sure = 0, maybe = 0;
  std::size_t skip = 0, take = 0;

  // Asked once for each entry, in order.
  bool takes(kernels::Magnitude size) {
    // Few lie between, so this branch is easy to predict, and one on `sure` would not be.
    const bool above = size >= sure;
    if ((size >= maybe) == above) return above;
    if (skip > 0) return --skip, false;
    return take > 0 && (--take, true);
  }
};

// The k largest of `values`, ties to the lower index. k may be 0.
Cut largest(kernels::Sum values, std::size_t k);

// Writes what the cut takes to `out`, which it fills exactly. An entry not taken goes back to next, unless
// that is empty. From candidates: next holds 0 for each; they are overwritten.
void take(Cut cut, kernels::Room candidates, kernels::Room out, std::span<float> next);
void take(Cut cut, kernels::Sum a, kernels::Room out, std::span<float> next);

// The same with a dense message: entries divided by `divisor`. From candidates: out holds 0 and next the
// value for each.
void take_dense(Cut cut, kernels::Room candidates, float divisor, std::span<float> out,
                std::span<float> next);
void take_dense(Cut cut, kernels::Sum a, float divisor, std::span<float> out, std::span<float> next);

// Adds up messages in rank order.
class Decoder {
 public:
  // `name` leads the error for a message that cannot be right. Their sum is divided by `divisor`.
  void decode(std::string_view name, const Context& context, std::span<const Message> messages,
              std::span<float> mean, int divisor);
  void decode(std::string_view name, const Context& context, std::span<const Message> messages,
              std::span<float> mean) {
    decode(name, context, messages, mean, context.world);
  }

 private:
  struct Cursor {
    std::size_t at = 0;        // The entry to read next.
    std::uint64_t lowest = 0;  // What its index must reach.
  };
  std::vector<Cursor> cursors_;
};

}  // namespace accordion::sparse
