// Rows of numbers and categories with a label, 0 or 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace accordion {

class Hash;

// What a model is shown, and asked for: whether a row is a 1. Each category comes from a table of its own.
struct TableShape {
  static constexpr std::string_view kKind = "tables", kSamples = "rows", kUnit = "rows";
  static constexpr bool kByPerplexity = false;  // Rather than by accuracy.
  static constexpr bool kInWindows = false;     // Whether a sample of a batch is a stream's window.
  int numbers;
  std::vector<int> tables;  // How many categories each has.

  int choices() const { return 2; }
};

struct Table {
  int numbers = 0;
  std::vector<int> tables;             // How many categories each column of them has.
  std::vector<float> values;           // Of each row.
  std::vector<std::int32_t> category;  // Of each row, one a table.
  std::vector<std::uint8_t> labels;

  std::size_t size() const { return labels.size(); }
  void resize(std::size_t count);
};

struct TableSet {
  Table train, test;

  TableShape shape() const { return {train.numbers, train.tables}; }
  void add_to(Hash& hash) const;
};

}  // namespace accordion
