#include "accordion/log/run_totals.h"

namespace accordion {

RunTotals total(const std::vector<EpochRecord>& epochs) {
  RunTotals sum;
  for (const EpochRecord& epoch : epochs) {
    sum.seconds += epoch.seconds;
    sum.steps += epoch.steps;
    sum.payload_bytes += epoch.payload_bytes;
    sum.wire_bytes += epoch.wire_bytes;
    sum.paper_floats += epoch.paper_floats;
    sum.entries += epoch.entries;
  }
  return sum;
}

}  // namespace accordion
