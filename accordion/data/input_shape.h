// The kinds of data. What is particular to one is said in its own header; all others ask.
#pragma once

#include <string_view>
#include <variant>

#include "accordion/data/images.h"
#include "accordion/data/table.h"
#include "accordion/data/text.h"

namespace accordion {

// What a model is shown and asked for: enough to build it, without the data.
using InputShape = std::variant<ImageShape, TextShape, TableShape>;

using DataContents = std::variant<ImageSet, TextSet, TableSet>;

inline std::string_view kind_name(const InputShape& input) {
  return std::visit([](const auto& shape) { return shape.kKind; }, input);
}

// What its samples are called, and where there is little room.
inline std::string_view sample_name(const InputShape& input) {
  return std::visit([](const auto& shape) { return shape.kSamples; }, input);
}
inline std::string_view sample_unit(const InputShape& input) {
  return std::visit([](const auto& shape) { return shape.kUnit; }, input);
}

// How many scores a model gives for each target.
inline int choices(const InputShape& input) {
  return std::visit([](const auto& shape) { return shape.choices(); }, input);
}

// What people know a model's success by, beside its loss: perplexity, or accuracy.
inline bool by_perplexity(const InputShape& input) {
  return std::visit([](const auto& shape) { return shape.kByPerplexity; }, input);
}

inline bool in_windows(const InputShape& input) {
  return std::visit([](const auto& shape) { return shape.kInWindows; }, input);
}

}  // namespace accordion
