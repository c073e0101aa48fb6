// A made-up recommender's log: who clicked what, drawn from a hidden model with a fixed seed.
//
// It stands in for logs that cannot be handed on, and says nothing about people. Each row has 13 numbers,
// normal and independent, and a category from each of 8 tables, the k-th most popular (id k - 1) with
// probability proportional to 1/k. A row is a click if
//
//   bias + slopes . numbers + (sum over categories) effect + (sum over pairs of them) u . v + noise > 0
//
// where effect, u and v (of 4 dimensions) belong to categories, and the noise is normal. Numbers alone say
// little, effects more, and pairs, which no sum of effects expresses, more again.
#pragma once

#include <array>
#include <cstddef>

#include "accordion/data/table.h"

namespace accordion {

inline constexpr int kClickNumbers = 13;
inline constexpr std::array kClickTables = {20000, 10000, 5000, 2000, 500, 100, 24, 7};
inline constexpr std::size_t kClickTrainRows = 100000, kClickTestRows = 10000;

// The same bits on every machine.
TableSet make_clicks();

}  // namespace accordion
