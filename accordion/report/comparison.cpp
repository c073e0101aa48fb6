#include "accordion/report/comparison.h"

#include "accordion/base/error.h"

namespace accordion {
namespace {

ComparisonRow averaged(const SettingResults& setting) {
  ComparisonRow row;
  row.setting = setting;
  std::vector<double> values;
  for (const SeedResult& seed : setting.seeds) {
    if (!seed.result) continue;
    values.push_back(seed.result->value);
    row.seconds += seed.result->seconds;
    row.payload_bytes += static_cast<double>(seed.result->payload_bytes);
    row.wire_bytes += static_cast<double>(seed.result->wire_bytes);
    row.paper_floats += static_cast<double>(seed.result->paper_floats);
  }
  row.runs = static_cast<int>(values.size());
  if (row.runs == 0) return row;
  row.value = mean_interval(values);
  for (double* sum : {&row.seconds, &row.payload_bytes, &row.wire_bytes, &row.paper_floats}) *sum /= row.runs;
  return row;
}

std::optional<double> ratio(double first, double other) {
  if (!(first > 0) || !(other > 0)) return std::nullopt;
  return first / other;
}

// Seed by seed.
std::vector<double> differences(const SettingResults& setting, const SettingResults& first) {
  std::vector<double> values;
  for (const SeedResult& ours : setting.seeds)
    for (const SeedResult& theirs : first.seeds)
      if (ours.seed == theirs.seed && ours.result && theirs.result)
        values.push_back(ours.result->value - theirs.result->value);
  return values;
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
      const std::vector<double> pairs = differences(row.setting, first.setting);
      row.pairs = static_cast<int>(pairs.size());
      if (!pairs.empty()) row.difference = mean_interval(pairs);
    }
    comparison.rows.push_back(std::move(row));
  }
  return comparison;
}

}  // namespace accordion
