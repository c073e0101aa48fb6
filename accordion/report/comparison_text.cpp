#include "accordion/report/comparison_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "accordion/base/json.h"
#include "accordion/log/progress_text.h"
#include "accordion/report/aligned.h"

namespace accordion {
namespace {

constexpr const char* kNothing = "-";

std::string formatted(const char* format, double value) {
  std::array<char, 64> text;
  const int size = std::snprintf(text.data(), text.size(), format, value);
  return {text.data(), static_cast<std::size_t>(std::clamp(size, 0, 63))};
}

// A value or a half-width without its unit: percent points, or perplexity.
std::string plain(Metric metric, double value) {
  return formatted("%.2f", metric == Metric::kAccuracy ? 100 * value : value);
}

std::string width_text(Metric metric, const std::optional<double>& width) {
  return width ? "± " + plain(metric, *width) : kNothing;
}

// " (2.8x)", " (0.97x)", " (125x)"
std::string ratio_text(const std::optional<double>& ratio) {
  if (!ratio) return "";
  std::string digits = formatted(*ratio < 9.995 ? "%.2f" : *ratio < 99.95 ? "%.1f" : "%.0f", *ratio);
  if (digits.find('.') != std::string::npos) {
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
  }
  return " (" + digits + "x)";
}

// "2418.4" as published, "0.75" for small runs.
std::string millions_text(double count) {
  return formatted(count < 99.95e6 ? "%.3g" : "%.1f", count / 1e6);
}

std::string cell_text(std::string_view text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? "\\|" : std::string(1, c);
  return cell;
}

// "-0.28 ± 0.49", of a row's differences to the first.
std::string difference_text(const ComparisonRow& row, Metric metric) {
  if (!row.difference) return kNothing;
  const double mean = row.difference->mean;
  std::string text = (mean < 0 ? "-" : "+") + plain(metric, std::abs(mean));
  if (row.difference->student95) text += " " + width_text(metric, row.difference->student95);
  return text;
}

Cells cells_of(const ComparisonRow& row, Metric metric) {
  std::string name = cell_text(row.setting.name);
  if (row.runs == 0)
    return {name, "no run finished", kNothing, kNothing, kNothing, kNothing, kNothing, kNothing};
  if (row.runs < static_cast<int>(row.setting.seeds.size()))
    name += " (" + std::to_string(row.runs) + " of " + std::to_string(row.setting.seeds.size()) + " runs)";
  return {name,
          plain(metric, row.value.mean),
          width_text(metric, row.value.normal95),
          width_text(metric, row.value.student95),
          difference_text(row, metric),
          bytes_text(static_cast<std::uint64_t>(std::llround(row.wire_bytes))) + ratio_text(row.wire_ratio),
          millions_text(row.paper_floats) + ratio_text(row.paper_floats_ratio),
          seconds_text(row.seconds) + ratio_text(row.seconds_ratio)};
}

// How far off the first row's, and in which direction: "3.18 points below mild".
std::string apart_text(double difference, const std::string& name, Metric metric) {
  const std::string amount = plain(metric, std::abs(difference));
  if (amount == "0.00") return "the same as " + name;
  if (metric == Metric::kAccuracy) return amount + " points " + (difference < 0 ? "below " : "above ") + name;
  return amount + (difference < 0 ? " lower (better) than " : " higher (worse) than ") + name;
}

// A row beside the first one: worse or better where the interval of their paired differences says so, else by how much it may
// be worse at most.
std::string relation(const ComparisonRow& row, const ComparisonRow& first, Metric metric) {
  const std::string& name = first.setting.name;
  if (!row.difference)
    return apart_text(row.value.mean - first.value.mean, name, metric) +
           " (no seed in common, so no interval)";
  const double difference = row.difference->mean;
  if (!row.difference->student95)
    return apart_text(difference, name, metric) + " (a single pair, so no interval)";
  const double width = *row.difference->student95;
  const std::string paired =
      " (paired difference " + difference_text(row, metric) + ", " + std::to_string(row.pairs) + " seeds)";
  if (std::abs(difference) > width) return apart_text(difference, name, metric) + paired;
  const double worst = metric == Metric::kAccuracy ? width - difference : width + difference;
  return "no worse than " + name + " by more than " + plain(metric, worst) +
         (metric == Metric::kAccuracy ? " points" : "") + paired;
}

std::string clause(const ComparisonRow& row, const ComparisonRow& first, Metric metric) {
  if (row.runs == 0) return row.setting.name + ": no run finished";
  std::string text = row.setting.name + ": " + value_text(metric, row.value.mean);
  if (first.runs > 0) text += ", " + relation(row, first, metric);
  if (row.wire_ratio) {
    const double share = 1 / *row.wire_ratio;
    text += ", with " + formatted(share < 0.095 ? "%.2g" : "%.2f", share) + " of its data";
  }
  return text;
}

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_array()) {
    std::string items;
    for (const Json& item : value) items += (&item == &value.front() ? "" : ";") + csv_cell(item);
    return items;
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string csv_line(const Cells& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) line += ',';
    if (cell.find_first_of(",\"\r\n") == std::string::npos) {
      line += cell;
      continue;
    }
    line += '"';
    for (const char c : cell) line += c == '"' ? "\"\"" : std::string(1, c);
    line += '"';
  }
  return line + "\n";
}

}  // namespace

std::string value_text(Metric metric, double value) {
  return plain(metric, value) + (metric == Metric::kAccuracy ? " %" : "");
}

std::string seconds_text(double seconds) {
  return formatted(seconds < 99.95 ? "%.1f s" : "%.0f s", seconds);
}

std::string markdown_table(const Comparison& comparison) {
  std::vector<Cells> lines = {
      {"setting", comparison.metric == Metric::kAccuracy ? "test accuracy, %" : "test perplexity", "± normal",
       "± Student", "paired difference", "sent per worker", "million floats", "time"}};
  for (const ComparisonRow& row : comparison.rows) lines.push_back(cells_of(row, comparison.metric));
  align(lines, 3);

  std::string text;
  for (const Cells& line : lines) {
    for (const std::string& cell : line) text += "| " + cell + " ";
    text += "|\n";
    if (&line != &lines.front()) continue;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string dashes(static_cast<std::size_t>(columns_of(line[i])), '-');
      text += i == 0 ? "| " + dashes + " " : "| " + dashes + ":";
    }
    text += "|\n";
  }
  return text;
}

std::string reading(const Comparison& comparison) {
  std::string text;
  for (std::size_t i = 1; i < comparison.rows.size(); ++i)
    text += (i > 1 ? "; " : "") + clause(comparison.rows[i], comparison.rows.front(), comparison.metric);
  return text.empty() ? text : text + ".";
}

Json comparison_json(const Comparison& comparison) {
  Json rows = Json::array();
  for (const ComparisonRow& row : comparison.rows) {
    const bool ran = row.runs > 0;
    const auto number = [ran](double value) { return ran ? Json(value) : Json(); };
    const auto count = [ran](double value) { return ran ? Json(std::llround(value)) : Json(); };
    Json seeds = Json::array(), values = Json::array(), folders = Json::array();
    for (const SeedResult& seed : row.setting.seeds) {
      seeds.push_back(seed.seed);
      values.push_back(seed.result ? Json(seed.result->value) : Json());
      folders.push_back(seed.folder);
    }
    rows.push_back({{"setting", row.setting.name},
                    {"seeds", seeds},
                    {"runs", row.runs},
                    {"metric", comparison.metric == Metric::kAccuracy ? "test_accuracy" : "test_perplexity"},
                    {"mean", number(row.value.mean)},
                    {"normal95", or_null(row.value.normal95)},
                    {"student95", or_null(row.value.student95)},
                    {"paired_difference", row.difference ? Json(row.difference->mean) : Json()},
                    {"paired_student95", row.difference ? or_null(row.difference->student95) : Json()},
                    {"pairs", row.pairs},
                    {"train_loss", or_null(row.train_loss)},
                    {"train_loss_difference",
                     row.train_loss_difference ? Json(row.train_loss_difference->mean) : Json()},
                    {"train_loss_student95",
                     row.train_loss_difference ? or_null(row.train_loss_difference->student95) : Json()},
                    {"payload_bytes", count(row.payload_bytes)},
                    {"wire_bytes", count(row.wire_bytes)},
                    {"paper_floats", count(row.paper_floats)},
                    {"seconds", number(row.seconds)},
                    {"extra_share", or_null(row.extra_share)},
                    {"wire_ratio", or_null(row.wire_ratio)},
                    {"paper_floats_ratio", or_null(row.paper_floats_ratio)},
                    {"seconds_ratio", or_null(row.seconds_ratio)},
                    {"values", values},
                    {"folders", folders}});
  }
  return rows;
}

std::string comparison_csv(const Comparison& comparison) {
  std::string text;
  for (const Json& row : comparison_json(comparison)) {
    Cells names, cells;
    for (const auto& [key, value] : row.items()) {
      names.push_back(key);
      cells.push_back(csv_cell(value));
    }
    text += (text.empty() ? csv_line(names) : "") + csv_line(cells);
  }
  return text;
}

}  // namespace accordion
