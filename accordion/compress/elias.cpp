#include "accordion/compress/elias.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace accordion::elias {
namespace {

// A number's code, its first bit lowest.
struct Code {
  std::uint64_t bits = 0;
  int length = 1;
};

constexpr Code encode(std::uint32_t number) {
  Code code;
  while (number > 1) {
    const int width = std::bit_width(number);
    for (int i = 0; i < width; ++i) code.bits = code.bits << 1 | (number >> i & 1);
    code.length += width;
    number = static_cast<std::uint32_t>(width - 1);
  }
  // The 0 at the end is the highest bit.
  return code;
}

constexpr auto kCodes = [] {
  std::array<Code, 128> codes;
  for (std::uint32_t number = 1; number < codes.size(); ++number) codes[number] = encode(number);
  return codes;
}();

Code code_of(std::uint32_t number) {
  return number < kCodes.size() ? kCodes[number] : encode(number);
}

}  // namespace

constinit const std::array<Start, 1 << 13> kStarts = [] {
  std::array<Start, 1 << 13> starts;
  for (std::size_t number = 1; number < kCodes.size(); ++number) {
    const auto [bits, length] = kCodes[number];
    for (std::size_t rest = 0; rest < starts.size() >> length; ++rest)
      starts[rest << length | bits] = {static_cast<std::uint8_t>(number), static_cast<std::uint8_t>(length)};
  }
  return starts;
}();

int length(std::uint32_t number) {
  return encode(number).length;
}

void Writer::bits(std::uint64_t bits, int count) {
  held_ |= bits << count_;
  count_ += count;
  const int whole = count_ / 8;
  if (end_ - out_ >= 8) {
    std::memcpy(out_, &held_, 8);
  } else {
    for (int i = 0; i < whole; ++i) out_[i] = static_cast<std::byte>(held_ >> 8 * i);
  }
  out_ += whole;
  held_ = whole == 8 ? 0 : held_ >> 8 * whole;
  count_ %= 8;
}

void Writer::number(std::uint32_t number) {
  const Code code = code_of(number);
  bits(code.bits, code.length);
}

void Writer::levels(std::span<const std::int8_t> levels) {
  const auto zeros = static_cast<std::size_t>(std::count(levels.begin(), levels.end(), 0));
  number(static_cast<std::uint32_t>(levels.size() - zeros) + 1);
  std::size_t beyond = 0;  // The last entry's index, plus 1.
  const auto entry = [&](std::size_t i) {
    number(static_cast<std::uint32_t>(i + 1 - beyond));
    const Code magnitude = kCodes[static_cast<std::size_t>(std::abs(levels[i]))];
    bits(magnitude.bits << 1 | (levels[i] < 0 ? 1 : 0), magnitude.length + 1);
    beyond = i + 1;
  };
  // Eight at a time, because most are 0.
  std::size_t i = 0;
  for (; i + 8 <= levels.size(); i += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, levels.data() + i, 8);
    while (eight != 0) {
      const int byte = std::countr_zero(eight) / 8;
      entry(i + static_cast<std::size_t>(byte));
      eight &= ~(std::uint64_t{0xff} << 8 * byte);
    }
  }
  for (; i < levels.size(); ++i)
    if (levels[i] != 0) entry(i);
}

std::size_t Writer::finish() {
  if (count_ > 0) *out_++ = static_cast<std::byte>(held_);
  return static_cast<std::size_t>(out_ - begin_);
}

std::uint64_t Reader::peek_at_end() const {
  std::uint64_t next = 0;
  const std::size_t from = at_ / 8;
  for (std::size_t i = from; i < bytes_.size(); ++i)
    next |= std::to_integer<std::uint64_t>(bytes_[i]) << 8 * (i - from);
  return next >> at_ % 8;
}

std::uint32_t Reader::long_number() {
  std::uint32_t number = 1;
  while (bits(1) != 0) {
    if (number > 31) fail("has a number of more than 32 bits");
    std::uint32_t digits = bits(static_cast<int>(number)), longer = 1;
    for (std::uint32_t i = 0; i < number; ++i, digits >>= 1) longer = longer << 1 | (digits & 1);
    number = longer;
  }
  return number;
}

void Reader::finish() const {
  if ((at_ + 7) / 8 != bytes_.size()) fail("goes on after the last block");
}

void Reader::fail(const std::string& what) const {
  throw Error(std::string(codec_) + ": message from rank " + std::to_string(rank_) + " " + what);
}

}  // namespace accordion::elias
