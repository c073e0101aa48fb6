// A stream of bits with Elias' omega codes: short for small numbers, and good for any number of at least 1.
//
// The code of a number is its binary digits, before them those of their count less one, and so on down to 1,
// and a 0 at the end: 1 is 0, 2 is 10 0, 4 is 10 100 0. Bits fill bytes from the low bit up; a number's
// digits come high to low.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "accordion/base/error.h"

namespace accordion::elias {

// Bits of a number's code.
int length(std::uint32_t number);

class Writer {
 public:
  explicit Writer(std::span<std::byte> out) : begin_(out.data()), out_(begin_), end_(begin_ + out.size()) {}

  // The low `count` bits, up to 56, the lowest first; the others are 0.
  void bits(std::uint64_t bits, int count);
  void number(std::uint32_t number);

  // The number of levels that are not 0, plus 1; for each of them, the distance from the one before (or from
  // -1), a bit that is 1 if it is negative, and its magnitude.
  void levels(std::span<const std::int8_t> levels);

  // Returns how many bytes there are.
  std::size_t finish();

 private:
  std::byte *begin_, *out_, *end_;
  std::uint64_t held_ = 0;
  int count_ = 0;  // Bits held, below 8 between calls.
};

// The number below 128 whose code comes first in these bits, and the code's length; 0 if it is none.
struct Start {
  std::uint8_t number = 0, length = 0;
};
extern const std::array<Start, 1 << 13> kStarts;

// Throws Error where the stream ends early or cannot be right.
class Reader {
 public:
  // The message of `rank`, for the codec of this name.
  Reader(std::span<const std::byte> bytes, std::string_view codec, std::size_t rank)
      : bytes_(bytes), codec_(codec), rank_(rank) {}

  // Up to 32.
  std::uint32_t bits(int count) {
    const std::uint64_t next = peek() & ((std::uint64_t{1} << count) - 1);
    take(static_cast<std::size_t>(count));
    return static_cast<std::uint32_t>(next);
  }

  std::uint32_t number() {
    const Start start = kStarts[peek() % kStarts.size()];
    if (start.length == 0) return long_number();
    take(start.length);
    return start.number;
  }

  // Calls entry(index, level) for each level of n that is not 0. Magnitudes are up to `most`.
  template <class Entry>
  void levels(std::size_t n, std::uint32_t most, Entry entry) {
    const std::uint32_t count = number() - 1;
    if (count > n) fail("has " + std::to_string(count) + " levels in a block of " + std::to_string(n));
    std::size_t beyond = 0;
    for (std::uint32_t k = 0; k < count; ++k) {
      beyond += number();
      if (beyond > n) fail("has entry " + std::to_string(beyond - 1) + " in a block of " + std::to_string(n));
      const bool negative = bits(1) != 0;
      const std::uint32_t level = number();
      if (level > most)
        fail("has level " + std::to_string(level) + ", expected at most " + std::to_string(most));
      entry(beyond - 1, negative ? -static_cast<int>(level) : static_cast<int>(level));
    }
  }

  // Only what fills the last byte may be left.
  void finish() const;

 private:
  // At least the next 57 bits; zeros after the end.
  std::uint64_t peek() const {
    const std::size_t from = at_ / 8;
    if (from + 8 > bytes_.size()) return peek_at_end();
    std::uint64_t next;
    std::memcpy(&next, bytes_.data() + from, 8);
    return next >> at_ % 8;
  }

  void take(std::size_t count) {
    at_ += count;
    if (at_ > 8 * bytes_.size()) fail("ends early");
  }

  std::uint64_t peek_at_end() const;
  std::uint32_t long_number();
  [[noreturn]] void fail(const std::string& what) const;

  std::span<const std::byte> bytes_;
  std::string_view codec_;
  std::size_t rank_, at_ = 0;  // In bits.
};

}  // namespace accordion::elias
