#include "accordion/engine/epoch_report.h"

#include <utility>

namespace accordion {

EpochRecord to_record(EpochReport report) {
  const Traffic& traffic = report.stats.traffic;
  EpochRecord record;
  record.epoch = report.epoch;
  record.steps = report.stats.steps;
  record.dropped_steps = report.stats.dropped_steps;
  record.payload_bytes = traffic.payload_bytes;
  record.wire_bytes = traffic.wire_bytes;
  record.control_bytes = traffic.control_bytes;
  record.paper_floats = traffic.paper_floats;
  record.entries = traffic.entries;
  record.saturated = traffic.saturated;
  record.hidden_share = report.overlap.hidden_share();
  record.layers = std::move(report.layers);
  record.windows = std::move(report.windows);
  record.guard = std::move(report.guard);
  record.step_split = report.step_split;
  return record;
}

}  // namespace accordion
