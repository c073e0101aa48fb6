// What `accordion advise` prints: tables and sentences for people, rows for programs.
#pragma once

#include <vector>

#include "accordion/base/json_fwd.h"
#include "accordion/perf/advice.h"

namespace accordion::cli {

struct AdviceGrid {
  std::vector<int> workers;
  std::vector<double> gbps;
  std::vector<perf::Advice> points;  // Of each number of workers, one bandwidth after the other.

  perf::Range range() const { return {gbps.front(), gbps.back()}; }
};

void print_advice(const perf::Case& it, const perf::Advice& advice);
void print_grid(const perf::Case& it, const AdviceGrid& grid);

Json advice_json(const perf::Case& it, const perf::Advice& advice);
Json grid_json(const perf::Case& it, const AdviceGrid& grid);

// The rows of the JSON, flat.
void print_csv(const std::vector<perf::Advice>& points);

}  // namespace accordion::cli
