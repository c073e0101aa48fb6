// A small language model of the GPT kind: a Transformer of which each position sees itself and those before.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "accordion/base/error.h"
#include "accordion/base/options.h"
#include "accordion/data/input_shape.h"
#include "accordion/models/usual.h"

namespace accordion {

class Network;

// (V + C) w + L (12 w^2 + 13 w) + 2 w parameters for a vocabulary of V words, L layers of width w and a
// context of C tokens.
struct GptOptions {
  static constexpr std::string_view kName = "gpt";
  static constexpr Usual kUsual = {"sotu", 16};
  static constexpr std::string_view kTiny = "layers=2,heads=2,width=8,context=8,dropout=0";  // For tests.
  int layers = 4, heads = 4, width = 128, context = 128;
  double dropout = 0.1;
  void fields(auto&& field) {
    field("layers", layers, "Blocks of attention and MLP.", at_least(1).up_to(256));
    field("heads", heads, "Heads of attention, a divisor of the width.", at_least(1).up_to(1024));
    field("width", width, "Numbers that stand for a token.", at_least(1).up_to(16384));
    field("context", context, "Longest window of tokens.", at_least(1).up_to(65536));
    field("dropout", dropout, "Fraction dropped of embeddings, attention and each block's output.",
          at_least(0).below(1));
  }

  // What no single field's range can say. Throws UsageError.
  void check() const {
    if (width % heads != 0)
      throw UsageError("gpt: heads=" + std::to_string(heads) +
                       ", expected a divisor of width=" + std::to_string(width));
  }
};

// Throws UsageError when the heads do not divide the width; its forward throws Error for a window longer than
// the context.
std::shared_ptr<Network> make(const GptOptions& options, const TextShape& input);

}  // namespace accordion
