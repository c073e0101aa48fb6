// What a model is shown and asked for: enough to build it, without the data.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

namespace accordion {

// Which of `classes` an image belongs to.
struct ImageShape {
  int channels, height, width, classes;
};

// Which word of the vocabulary comes next.
struct TextShape {
  int vocabulary;
};

// Whether a row of numbers and categories is a 1; each category comes from a table of its own.
struct TableShape {
  int numbers;
  std::vector<int> tables;  // How many categories each has.
};

using InputShape = std::variant<ImageShape, TextShape, TableShape>;

// What its samples are called.
inline std::string_view sample_name(const InputShape& input) {
  constexpr std::string_view kNames[] = {"images", "tokens", "rows"};
  return kNames[input.index()];
}

}  // namespace accordion
