// Rows of a table as tensors: numbers first, then categories, as a model takes them.
#pragma once

#include <torch/torch.h>

#include <span>

#include "accordion/data/table.h"
#include "accordion/train/feed.h"

namespace accordion {

inline Example table_rows(const Table& table, std::span<const std::uint32_t> rows) {
  const std::int64_t count = static_cast<std::int64_t>(rows.size()), numbers = table.numbers,
                     tables = static_cast<std::int64_t>(table.tables.size());
  Example example{torch::empty({count, numbers + tables}), torch::empty({count}, torch::kLong)};
  float* out = example.input.data_ptr<float>();
  std::int64_t* target = example.targets.data_ptr<std::int64_t>();
  for (const std::uint32_t row : rows) {
    const auto at = static_cast<std::int64_t>(row);
    out = std::copy_n(table.values.begin() + at * numbers, numbers, out);
    // Exact: no table has as many as 2^24 categories.
    for (std::int64_t t = 0; t < tables; ++t)
      *out++ = static_cast<float>(table.category[static_cast<std::size_t>(at * tables + t)]);
    *target++ = table.labels[row];
  }
  return example;
}

}  // namespace accordion
