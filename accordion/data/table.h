// Rows of numbers and categories with a label, 0 or 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace accordion {

struct Table {
  int numbers = 0;
  std::vector<int> tables;             // How many categories each column of them has.
  std::vector<float> values;           // Of each row.
  std::vector<std::int32_t> category;  // Of each row, one a table.
  std::vector<std::uint8_t> labels;

  std::size_t size() const { return labels.size(); }
};

struct TableSet {
  Table train, test;
};

}  // namespace accordion
