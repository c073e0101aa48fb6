// What surrounds a gathered message: a header that says what it is, and padding to 8 bytes.
//
// frame := codec: u8, flags: u8, version: u16,
//          elements: u32, count: u32, payload_bytes: u32,
//          payload, padding
//
// The codec is its kFrameId.
//
// Little-endian, as every machine that libtorch runs on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "accordion/compress/compressor.h"

namespace accordion {

inline constexpr std::size_t kFrameHeader = 16;

// The whole frame around a payload of that size.
constexpr std::size_t frame_bytes(std::size_t payload) {
  return kFrameHeader + (payload + 7) / 8 * 8;
}

// Completes the frame whose payload already lies behind the header's place. Returns its length.
std::size_t write_frame(std::span<std::byte> frame, std::uint8_t codec, std::size_t elements,
                        const Encoded& encoded);

// Takes the first frame off `bytes`. Throws an Error, led by `where`, for one that is cut short or is not
// what this rank expects; the payload then lies within `bytes`.
Message read_frame(std::span<const std::byte>& bytes, std::uint8_t codec, std::size_t elements,
                   std::size_t max_payload, const std::string& where);

}  // namespace accordion
