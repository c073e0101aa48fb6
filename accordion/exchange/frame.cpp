#include "accordion/exchange/frame.h"

#include <bit>
#include <cstring>

#include "accordion/base/error.h"

namespace accordion {
namespace {

static_assert(std::endian::native == std::endian::little);

struct Header {
  std::uint8_t codec, flags;
  std::uint16_t version;
  std::uint32_t elements, count, payload_bytes;
};
static_assert(sizeof(Header) == kFrameHeader);

constexpr std::uint16_t kFrameVersion = 1;

}  // namespace

std::size_t write_frame(std::span<std::byte> frame, std::uint8_t codec, std::size_t elements,
                        const Encoded& encoded) {
  constexpr std::size_t kMost = 0xffffffff;
  if (elements > kMost || encoded.bytes > kMost)
    throw Error("a message of " + std::to_string(encoded.bytes) + " bytes for " + std::to_string(elements) +
                " elements, expected both below 2^32; a stronger setting or `none` would do");
  const Header header{codec,         encoded.flags,
                      kFrameVersion, static_cast<std::uint32_t>(elements),
                      encoded.count, static_cast<std::uint32_t>(encoded.bytes)};
  std::memcpy(frame.data(), &header, sizeof header);
  const std::size_t length = frame_bytes(encoded.bytes);
  std::memset(frame.data() + kFrameHeader + encoded.bytes, 0, length - kFrameHeader - encoded.bytes);
  return length;
}

Message read_frame(std::span<const std::byte>& bytes, std::uint8_t codec, std::size_t elements,
                   std::size_t max_payload, const std::string& where) {
  Header header;
  if (bytes.size() < sizeof header)
    throw Error(where + ": the message ends after " + std::to_string(bytes.size()) +
                " bytes of a frame's header");
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto expect = [&](const char* what, std::uint64_t value, std::uint64_t expected) {
    if (value != expected)
      throw Error(where + ": " + what + " is " + std::to_string(value) + ", expected " +
                  std::to_string(expected));
  };
  expect("the frame's version", header.version, kFrameVersion);
  expect("the frame's codec", header.codec, codec);
  expect("the frame's number of elements", header.elements, elements);
  if (header.payload_bytes > max_payload)
    throw Error(where + ": a payload of " + std::to_string(header.payload_bytes) +
                " bytes, expected at most " + std::to_string(max_payload));
  const std::size_t length = frame_bytes(header.payload_bytes);
  if (bytes.size() < length)
    throw Error(where + ": the message ends after " + std::to_string(bytes.size()) + " of a frame's " +
                std::to_string(length) + " bytes");
  const Message message{bytes.subspan(kFrameHeader, header.payload_bytes), header.count, header.flags};
  bytes = bytes.subspan(length);
  return message;
}

}  // namespace accordion
