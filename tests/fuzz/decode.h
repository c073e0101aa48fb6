// What a fuzzer does with its bytes: messages for a codec's decoder that no rank ever sent.
#pragma once

#include <cstdint>
#include <span>

#include "accordion/compress/codecs.h"

namespace accordion {

// Two steps of a layer whose shape, ranks and messages the input chooses: a real message, cut, stretched or
// changed, or bytes from nowhere, with or without a frame. False if the decoder refused with an Error; any
// other exception comes through. Input that has run out reads as zeros, which change nothing: the empty input
// is two honest steps.
bool decode_bytes(const CodecOptions& codec, std::span<const std::uint8_t> input);

}  // namespace accordion
