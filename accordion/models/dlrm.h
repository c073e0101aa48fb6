// A recommender (Naumov et al. 2019, DLRM): will this row's user click?
#pragma once

#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/data/input_shape.h"
#include "accordion/models/usual.h"

namespace accordion {

class Network;

// The bottom MLP makes a vector of the numbers, a table has one for each category; the top MLP sees the
// former and the dot product of every two vectors. Nearly all parameters lie in the tables, and a batch
// touches few of their rows; gradients are dense all the same.
struct DlrmOptions {
  static constexpr std::string_view kName = "dlrm";
  static constexpr Usual kUsual = {"clicks", 256};
  static constexpr std::string_view kTiny = "embedding=4,bottom=8,top=8";  // For tests.
  int embedding = 16, bottom = 64, top = 64;
  void fields(auto&& field) {
    field("embedding", embedding, "Numbers that stand for a category.", at_least(1).up_to(4096));
    field("bottom", bottom, "Units of the bottom MLP's first hidden layer; its second has half of them.",
          at_least(2).up_to(16384));
    field("top", top, "Units of the top MLP's first hidden layer; its second has half of them.",
          at_least(2).up_to(16384));
  }
};

// Scores are 0 and the logit of a 1, so that cross entropy is the logistic loss. Throws UsageError for a
// table without numbers or without categories; its forward throws Error for a category that is not in its
// table.
std::shared_ptr<Network> make(const DlrmOptions& options, const TableShape& input);

}  // namespace accordion
