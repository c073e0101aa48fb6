// Every codec by name. A setting is written `name:option=value,option=value`, or just `name`.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "accordion/base/options.h"

namespace accordion {

// The dense gradient in single precision.
struct NoneOptions {
  static constexpr std::string_view kName = "none";
  void fields(auto&&) {}
};

using CodecOptions = std::variant<NoneOptions>;

std::vector<std::string> codec_names();

// Throws UsageError for an unknown codec or option and for a value out of range.
CodecOptions parse_codec(std::string_view setting);

// The setting that parse_codec reads back, with every option spelt out.
std::string codec_text(const CodecOptions& codec);

}  // namespace accordion
