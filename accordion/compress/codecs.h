// Every codec by name. A setting is written `name:option=value,option=value`, or just `name`.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "accordion/base/options.h"
#include "accordion/compress/atomo.h"
#include "accordion/compress/bf16.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/dgc.h"
#include "accordion/compress/fp16.h"
#include "accordion/compress/mstopk.h"
#include "accordion/compress/powersgd.h"
#include "accordion/compress/qsgd.h"
#include "accordion/compress/randomk.h"
#include "accordion/compress/sign_scaled.h"
#include "accordion/compress/sign_vote.h"
#include "accordion/compress/terngrad.h"
#include "accordion/compress/threshold.h"
#include "accordion/compress/topk.h"

namespace accordion {

// The dense gradient in single precision. Has no compressor: the exchange adds it up with all else that is
// dense.
struct NoneOptions {
  static constexpr std::string_view kName = "none";
  void fields(auto&&) {}
};

// The order is part of the wire format: a frame names its codec by its place here.
using CodecOptions = std::variant<NoneOptions, Fp16Options, Bf16Options, TopKOptions, MsTopKOptions,
                                  RandomKOptions, DgcOptions, SignVoteOptions, SignScaledOptions, QsgdOptions,
                                  TernGradOptions, PowerSgdOptions, AtomoOptions, ThresholdOptions>;

std::vector<std::string> codec_names();

// Throws UsageError for an unknown codec or option and for a value out of range.
CodecOptions parse_codec(std::string_view setting);

// The setting that parse_codec reads back, with every option spelt out.
std::string codec_text(const CodecOptions& codec);

// Which tensors are not worth compressing.
struct Routing {
  std::size_t min_count = 1024;  // Smaller ones go dense.
  double min_rate = 2;           // So does what PowerSGD would shrink less than this.
  bool paper = false;            // As published: everything of two dimensions or more is compressed.
};

// As Accordion's published code has it, where that differs.
CodecOptions as_published(CodecOptions codec);

// Throws UsageError for options that contradict each other, and for settings that one run cannot go back and
// forth between.
void check_levels(std::span<const CodecOptions> levels);

// What one rank sends for a tensor in a step, in bytes without headers; a bound where the length varies.
std::size_t payload_bytes(const CodecOptions& codec, const Shape& shape, int world);

// Null where the tensor goes dense.
std::unique_ptr<Compressor> make_compressor(const CodecOptions& codec, const Shape& shape, int world,
                                            const Routing& routing);

}  // namespace accordion
