// Settings that ran with the same seeds, as the rows of a table. The first row is what the others are
// measured against.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accordion/report/interval.h"
#include "accordion/report/run_result.h"

namespace accordion {

struct SeedResult {
  std::int64_t seed = 0;
  std::string folder;
  std::optional<RunResult> result;  // None for a run that failed.
};

struct SettingResults {
  std::string name;
  std::vector<SeedResult> seeds;
};

struct ComparisonRow {
  SettingResults setting;
  int runs = 0;  // That finished. When there are none, nothing below means anything.
  MeanInterval value;
  double seconds = 0, payload_bytes = 0, wire_bytes = 0, paper_floats = 0;  // Means over the runs.
  // This row's value less the first row's, over the seeds that finished in both: they share what the seed decides, so their
  // differences spread far less than the values. None in the first row, and where there is no such seed.
  std::optional<MeanInterval> difference;
  int pairs = 0;
  // The same of the last epoch's training loss, where every run that finished has one: it scatters less than what is tested.
  std::optional<double> train_loss;
  std::optional<MeanInterval> train_loss_difference;
  // Of what the first row sends beyond the one that sends least, the share that this one sends; none where that is nothing.
  std::optional<double> extra_share;
  // The first row's over this one's, so that more is better; none where either sent, or ran, nothing.
  std::optional<double> seconds_ratio, wire_ratio, paper_floats_ratio;
};

struct Comparison {
  Metric metric = Metric::kAccuracy;
  std::vector<ComparisonRow> rows;
};

// Throws UsageError when some runs have an accuracy and others a perplexity.
Comparison compare(const std::vector<SettingResults>& settings);

}  // namespace accordion
