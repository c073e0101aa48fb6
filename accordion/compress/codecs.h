// What can be asked of any codec, whichever it is. A setting is written `name:option=value,option=value`, or
// just `name`.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accordion/base/options.h"
#include "accordion/compress/codec_list.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/routing.h"
#include "accordion/compress/traits.h"

namespace accordion {

std::vector<std::string> codec_names();
std::string_view codec_name(const CodecOptions& codec);

// What people call a codec of that name; the name itself where there is none.
std::string spoken_name(const std::string& name);

// Each codec once, with its defaults and its dial spelt out: all that compress and are not slow.
std::vector<std::string> usual_settings();

// Throws UsageError for an unknown codec or option and for a value out of range.
CodecOptions parse_codec(std::string_view setting);

// The setting that parse_codec reads back, with every option spelt out.
std::string codec_text(const CodecOptions& codec);

// What a frame calls the codec.
std::uint8_t frame_id(const CodecOptions& codec);

CodecTraits traits_of(const CodecOptions& codec);

// The value of the option that says how much is sent, and the same codec with another. Only for codecs that
// have a dial.
double dial_value(const CodecOptions& codec);
CodecOptions with_dial(CodecOptions codec, double value);

// As Accordion's published code has it, where that differs.
CodecOptions as_published(CodecOptions codec);

// Throws UsageError for options that contradict each other, and for settings that one run cannot go back and
// forth between.
void check_levels(std::span<const CodecOptions> levels);

// Throws UsageError for settings that so many ranks cannot have.
void check_ranks(std::span<const CodecOptions> levels, int world);

// What one rank sends for a tensor in a step, in bytes without headers; a bound where the length varies.
std::size_t payload_bytes(const CodecOptions& codec, const Shape& shape, int world);

// Whether a tensor is compressed, or goes dense.
bool is_compressed(const CodecOptions& codec, const Shape& shape, int world, const Routing& routing);

// Null where the tensor goes dense. Throws as check_ranks() does.
std::unique_ptr<Compressor> make_compressor(const CodecOptions& codec, const Shape& shape, int world,
                                            const Routing& routing);

}  // namespace accordion
