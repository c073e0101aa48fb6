// A comparison as people and programs read it.
#pragma once

#include <string>

#include "accordion/base/json_fwd.h"
#include "accordion/report/comparison.h"

namespace accordion {

// The table, with columns that also line up on a terminal:
//
//   | setting | test accuracy, % | ± normal | ± Student | paired difference | sent per worker | million floats | time |
std::string markdown_table(const Comparison& comparison);

// What the table says of each row but the first, in one sentence without line breaks: "accordion: 88.10 %,
// no worse than mild by more than 0.51 points (paired difference -0.10 ± 0.41, 3 seeds), with 0.41 of its
// data; strong: 85.02 %, 3.18 points below mild (paired difference -3.18 ± 0.62, 3 seeds), with 0.22 of its
// data." Empty for a single row.
std::string reading(const Comparison& comparison);

// One object a row; docs/formats.md lists the keys.
Json comparison_json(const Comparison& comparison);

// The same, one line a row below a line of names; lists are separated by semicolons.
std::string comparison_csv(const Comparison& comparison);

// "88.20 %", "97.2"
std::string value_text(Metric metric, double value);

// "41.2 s", "3509 s": always seconds, as the published tables have it.
std::string seconds_text(double seconds);

}  // namespace accordion
