#include "accordion/exchange/frame.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>

#include "accordion/base/error.h"

namespace accordion {
namespace {

TEST(Frame, ComesBackAsItWent) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& payload, std::uint8_t codec, std::uint8_t flags,
                           std::uint32_t count, std::uint32_t elements) {
    std::vector<std::byte> bytes(frame_bytes(payload.size()), std::byte{0xAA});
    std::transform(payload.begin(), payload.end(), bytes.begin() + kFrameHeader,
                   [](std::uint8_t byte) { return std::byte{byte}; });
    RC_ASSERT(write_frame(bytes, codec, elements, {payload.size(), count, flags}) == bytes.size());
    std::span<const std::byte> rest = bytes;
    const Message message = read_frame(rest, codec, elements, payload.size(), "test");
    RC_ASSERT(rest.empty());
    RC_ASSERT(message.count == count);
    RC_ASSERT(message.flags == flags);
    RC_ASSERT(message.payload.size() == payload.size());
    RC_ASSERT(std::equal(payload.begin(), payload.end(),
                         reinterpret_cast<const std::uint8_t*>(message.payload.data())));
  }));
}

// What fills a frame up is no memory of this rank's.
TEST(Frame, IsFilledUpWithZeros) {
  for (std::size_t payload = 0; payload < 9; ++payload) {
    std::vector<std::byte> bytes(frame_bytes(payload), std::byte{0xAA});
    write_frame(bytes, 1, 9, {payload, 0, 0});
    for (std::size_t i = kFrameHeader + payload; i < bytes.size(); ++i)
      EXPECT_EQ(bytes[i], std::byte{0}) << payload;
  }
}

// Its header counts in 32 bits.
TEST(Frame, RefusesWhatItCannotCount) {
  std::vector<std::byte> bytes(64);
  constexpr std::size_t kTooMany = std::size_t{1} << 32;
  EXPECT_THROW(write_frame(bytes, 1, kTooMany, {4, 0, 0}), Error);
  EXPECT_THROW(write_frame(bytes, 1, 4, {kTooMany, 0, 0}), Error);
  EXPECT_EQ(bytes, std::vector<std::byte>(64));
}

// Whatever arrives is refused, or is a payload within the bytes that arrived.
TEST(Frame, NeverReadsOutside) {
  EXPECT_TRUE(rc::check([](std::vector<std::uint8_t> bytes, std::uint8_t codec) {
    if (bytes.size() >= 4 && *rc::gen::arbitrary<bool>()) {
      bytes[0] = codec;
      bytes[2] = 1;
      bytes[3] = 0;
    }
    const auto all = std::as_bytes(std::span(bytes));
    std::span<const std::byte> rest = all;
    try {
      const Message message = read_frame(rest, codec, 7, 100, "test");
      RC_ASSERT(message.payload.size() <= 100u);
      RC_ASSERT(message.payload.data() + message.payload.size() <= all.data() + all.size());
    } catch (const Error&) {
    }
  }));
}

TEST(Frame, RefusalsSayWhatWasWrong) {
  std::vector<std::byte> bytes(frame_bytes(5));
  write_frame(bytes, 3, 7, {5, 2, 0});
  const auto refusal = [&](std::size_t length, std::uint8_t codec, std::size_t elements, std::size_t most) {
    std::span<const std::byte> rest = std::span(bytes).first(length);
    try {
      read_frame(rest, codec, elements, most, "message of rank 2 for conv");
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refusal(24, 3, 7, 5), "");
  EXPECT_EQ(refusal(24, 4, 7, 5), "message of rank 2 for conv: the frame's codec is 3, expected 4");
  EXPECT_EQ(refusal(24, 3, 8, 5),
            "message of rank 2 for conv: the frame's number of elements is 7, expected 8");
  EXPECT_EQ(refusal(24, 3, 7, 4), "message of rank 2 for conv: a payload of 5 bytes, expected at most 4");
  EXPECT_EQ(refusal(23, 3, 7, 5),
            "message of rank 2 for conv: the message ends after 23 of a frame's 24 bytes");
  EXPECT_EQ(refusal(9, 3, 7, 5),
            "message of rank 2 for conv: the message ends after 9 bytes of a frame's header");
  bytes[2] = std::byte{2};
  EXPECT_EQ(refusal(24, 3, 7, 5), "message of rank 2 for conv: the frame's version is 2, expected 1");
}

}  // namespace
}  // namespace accordion
