// A word-level language model: LSTM layers between an embedding and a decoder that share one matrix (Press
// and Wolf 2017).
#pragma once

#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/data/input_shape.h"
#include "accordion/models/usual.h"

namespace accordion {

class Network;

// 8 L h (h + 1) + V (h + 1) parameters for L layers of h units and a vocabulary of V words; each layer has
// two bias vectors, as torch has them. The Accordion paper counts 28,949,319, which is 3 layers with 28,869
// words or 2 layers with 34,069; its text says two layers, its code has three.
struct LstmOptions {
  static constexpr std::string_view kName = "lstm";
  static constexpr Usual kUsual = {"wikitext2", 16};
  static constexpr std::string_view kTiny = "layers=2,hidden=6,dropout=0";  // For tests.
  int layers = 3, hidden = 650;
  double dropout = 0.4;
  void fields(auto&& field) {
    field("layers", layers, "LSTM layers.", at_least(1).up_to(64));
    field("hidden", hidden, "Units of a layer, and numbers that stand for a word.", at_least(1).up_to(16384));
    field("dropout", dropout, "Fraction dropped after the embedding and after each layer.",
          at_least(0).below(1));
  }
};

// Each stream's state goes from one batch to the next, without its history: gradients end at the window's
// first token. It is lost by forget(), and when the number of streams changes.
std::shared_ptr<Network> make(const LstmOptions& options, const TextShape& input);

}  // namespace accordion
