// How fast a group's sums, gathers and scatters are: a line through their times, or two.
#pragma once

#include <functional>
#include <string>

#include "accordion/comm/group.h"
#include "accordion/perf/profile.h"

namespace accordion::bench {

struct NetworkCalibration {
  double seconds = 20;     // For all of it, roughly.
  int ranks_per_host = 1;  // That share a link.
  std::size_t sum_bytes =
      0;  // Sums are at least this large, up to 16 MiB, however slow the link: a bucket's.
  double bandwidth_gbps = 0;  // At which the links are said to run; 0: as sums find them.
};

using Progress = std::function<void(const std::string& what)>;

// Called by all ranks of a group of at least two, and the same on all of them.
perf::NetworkProfile measure_network(Group& group, const NetworkCalibration& calibration,
                                     const Progress& progress);

}  // namespace accordion::bench
