// Deep gradient compression: very few entries, with momentum applied before they wait.
#pragma once

#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct DgcOptions {
  static constexpr std::string_view kName = "dgc";
  static constexpr std::uint8_t kFrameId = 6;
  double keep = 0.001;
  double momentum = 0.9;
  double sample = 0.01;
  bool nesterov = false;
  bool masking = true;
  bool warmup = false;
  double clip = 0;
  void fields(auto&& field) {
    field("keep", keep, "Fraction of entries sent, at most.", above(0).up_to(1));
    field("momentum", momentum, "Momentum factor; these tensors need none from the optimizer.",
          at_least(0).below(1));
    field("sample", sample, "Fraction of entries that the threshold is guessed from.", above(0).up_to(1));
    field("nesterov", nesterov, "Nesterov's momentum.");
    field("masking", masking, "Forget the momentum of an entry when it is sent.");
    field("warmup", warmup,
          "Send 25, 6.25, 1.5625, 0.4 and 0.1 % in the first five epochs, if that is more.");
    field("clip", clip,
          "Limit of the norm of the whole model's gradient, over the square root of the ranks; 0 for none.",
          at_least(0));
  }
  // Always worth it, whatever it keeps: a tensor whose momentum is DGC's at one level must be so at all.
  CodecTraits traits() const {
    return {.spoken = "DGC",
            .momentum = OwnMomentum{momentum, nesterov},
            .model_clip = clip,
            .worth = Worth::kAlways,
            .dial = Dial{"keep", 0.256, 0.001}};
  }
};

std::unique_ptr<Compressor> make(const DgcOptions& options, const Shape& shape);

// At most this, in any epoch: how many entries reach the guessed threshold varies.
std::size_t payload_bytes(const DgcOptions& options, const Shape& shape, int world);

}  // namespace accordion
