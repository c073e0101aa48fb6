// A model's loss over a test set, and what people know it by: accuracy, or for text perplexity. Sharded over
// ranks: every sample once, whatever the number of ranks.
#pragma once

#include <optional>

#include "accordion/comm/communicator.h"
#include "accordion/data/dataset.h"
#include "accordion/models/network.h"

namespace accordion {

struct Evaluation {
  double loss = 0;                      // Mean over samples.
  std::optional<double> accuracy = {};  // A fraction.
  std::optional<double> perplexity = {};
};

// `window`: positions of text that the model is shown at a time.
Evaluation evaluate(Network& model, const Dataset& data, int window, Communicator& control);

}  // namespace accordion
