#include "accordion/report/comparison.h"

#include <algorithm>

#include "accordion/base/error.h"

namespace accordion {
namespace {

ComparisonRow averaged(const SettingResults& setting) {
  ComparisonRow row;
  row.setting = setting;
  std::vector<double> values, losses;
  for (const SeedResult& seed : setting.seeds) {
    if (!seed.result) continue;
    values.push_back(seed.result->value);
    if (seed.result->train_loss) losses.push_back(*seed.result->train_loss);
    row.seconds += seed.result->seconds;
    row.payload_bytes += static_cast<double>(seed.result->payload_bytes);
    row.wire_bytes += static_cast<double>(seed.result->wire_bytes);
    row.paper_floats += static_cast<double>(seed.result->paper_floats);
  }
  row.runs = static_cast<int>(values.size());
  if (row.runs == 0) return row;
  row.value = mean_interval(values);
  if (losses.size() == values.size()) row.train_loss = mean_interval(losses).mean;
  for (double* sum : {&row.seconds, &row.payload_bytes, &row.wire_bytes, &row.paper_floats}) *sum /= row.runs;
  return row;
}

std::optional<double> ratio(double first, double other) {
  if (!(first > 0) || !(other > 0)) return std::nullopt;
  return first / other;
}

// Of what `of` takes from a result, seed by seed.
std::vector<double> differences(const SettingResults& setting, const SettingResults& first, auto of) {
  std::vector<double> values;
  for (const SeedResult& ours : setting.seeds)
    for (const SeedResult& theirs : first.seeds)
      if (ours.seed == theirs.seed && ours.result && theirs.result)
        values.push_back(of(*ours.result) - of(*theirs.result));
  return values;
}

void set_extra_shares(std::vector<ComparisonRow>& rows) {
  if (rows.empty() || rows.front().runs == 0) return;
  const double most = rows.front().wire_bytes;
  double least = most;
  for (const ComparisonRow& row : rows)
    if (row.runs > 0) least = std::min(least, row.wire_bytes);
  if (!(least < most)) return;
  for (ComparisonRow& row : rows)
    if (row.runs > 0) row.extra_share = (row.wire_bytes - least) / (most - least);
}

// The one metric of all runs.
Metric metric_of(const std::vector<SettingResults>& settings) {
  std::optional<Metric> metric;
  for (const SettingResults& setting : settings)
    for (const SeedResult& seed : setting.seeds) {
      if (!seed.result) continue;
      if (metric && seed.result->metric != *metric)
        throw UsageError("compare: " + setting.name + " has " +
                         (*metric == Metric::kAccuracy ? "a perplexity" : "an accuracy") +
                         " and others do not; expected settings that are measured alike");
      metric = seed.result->metric;
    }
  return metric.value_or(Metric::kAccuracy);
}

}  // namespace

Comparison compare(const std::vector<SettingResults>& settings) {
  Comparison comparison;
  comparison.metric = metric_of(settings);
  for (const SettingResults& setting : settings) {
    ComparisonRow row = averaged(setting);
    const ComparisonRow& first = comparison.rows.empty() ? row : comparison.rows.front();
    row.seconds_ratio = ratio(first.seconds, row.seconds);
    row.wire_ratio = ratio(first.wire_bytes, row.wire_bytes);
    row.paper_floats_ratio = ratio(first.paper_floats, row.paper_floats);
    if (!comparison.rows.empty()) {
      const auto pairs =
          differences(row.setting, first.setting, [](const RunResult& run) { return run.value; });
      row.pairs = static_cast<int>(pairs.size());
      if (!pairs.empty()) row.difference = mean_interval(pairs);
      if (!pairs.empty() && row.train_loss && first.train_loss)
        row.train_loss_difference = mean_interval(
            differences(row.setting, first.setting, [](const RunResult& run) { return *run.train_loss; }));
    }
    comparison.rows.push_back(std::move(row));
  }
  set_extra_shares(comparison.rows);
  return comparison;
}

}  // namespace accordion
