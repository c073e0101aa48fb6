// The zoo as a table, without torch in sight.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accordion/compress/tensor.h"
#include "accordion/data/input_shape.h"

namespace accordion {

struct ModelDescription {
  std::string name, data;
  std::int64_t parameters;
  int tensors, compressible_tensors;  // A bias or a norm's scale has one dimension, and goes dense.
};

// Every model on the data sets it is meant for, and the LSTM once more as published: on "wikitext2-nominal",
// which is WikiText-2 with the vocabulary of 28,869 words that the Accordion paper's parameter count implies.
std::vector<ModelDescription> describe_models();

// A model's parameters in order of registration, as the exchange sees them.
std::vector<TensorInfo> model_tensors(const std::string& setting, const InputShape& input);

}  // namespace accordion
