// Advice as JSON and CSV.
#include <cstdio>
#include <string>

#include "accordion/base/json.h"
#include "cli/advice_output.h"

namespace accordion::cli {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// Each tells what it is about, so that it can be read without the others.
Json row_json(const perf::Advice& advice, const perf::MethodAdvice& method) {
  const perf::Prediction& step = method.predicted;
  Json row = {{"method", step.method},
              {"workers", advice.workers},
              {"bandwidth_gbps", advice.gbps},
              {"step_ms", step.step * 1e3},
              {"backward_ms", step.backward * 1e3},
              {"encoding_ms", step.encoding * 1e3},
              {"communication_ms", step.communication * 1e3},
              {"decoding_ms", step.decoding * 1e3},
              {"rest_ms", step.rest * 1e3}};
  if (step.method != perf::kPlain) {
    row["wins"] = method.wins;
    row["break_even_gbps"] = method.break_even;
    row["wins_on_slowest"] = method.wins_on_slowest;
    row["wins_up_to_workers"] = or_null(method.wins_up_to);
    row["gathered_bytes"] = method.gathered_bytes;
    row["fits_up_to_workers"] = or_null(method.fits_up_to);
    row["extra_memory_bytes_per_parameter"] = method.extra_memory_bytes_per_parameter;
  }
  row["near_linear_ratio"] = or_null(advice.needed_ratio);
  row["verdict"] = advice.verdict;
  return row;
}

Json rows_of(const perf::Advice& advice) {
  Json rows = Json::array();
  for (const perf::MethodAdvice& method : advice.methods) rows.push_back(row_json(advice, method));
  return rows;
}

void add_point(Json& json, const perf::Advice& advice) {
  json["workers"] = advice.workers;
  json["bandwidth_gbps"] = advice.gbps;
  json["verdict"] = advice.verdict;
  json["best"] = advice.best().predicted.method;
  json["near_linear_ratio"] = or_null(advice.needed_ratio);
  json["rows"] = rows_of(advice);
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", value.get<double>());
    return text;
  }
  std::string cells;
  if (value.is_string()) {
    for (const char c : value.get<std::string>()) cells += c == '"' ? "\"\"" : std::string(1, c);
    return '"' + cells + '"';
  }
  if (!value.is_array()) return value.dump();
  for (const Json& each : value) cells += (cells.empty() ? "" : ";") + csv_cell(each);
  return cells;
}

void print_csv_line(const Json& columns, const auto& cell_of) {
  std::string line;
  for (const auto& [key, value] : columns.items()) line += (line.empty() ? "" : ",") + cell_of(key);
  std::printf("%s\n", line.c_str());
}

}  // namespace

Json advice_json(const perf::Case& it, const perf::Advice& advice) {
  Json json = {{"model", it.model.model}, {"batch", it.model.batch}, {"published", it.published}};
  add_point(json, advice);
  return json;
}

Json grid_json(const perf::Case& it, const AdviceGrid& grid) {
  Json json = {{"model", it.model.model}, {"batch", it.model.batch}, {"published", it.published}};
  for (const perf::Advice& advice : grid.points)
    add_point(json["points"].emplace_back(Json::object()), advice);
  for (const int workers : grid.workers)
    for (const perf::Regime& regime : perf::regimes(it, workers, grid.range()))
      json["regimes"].push_back({{"workers", workers},
                                 {"from_gbps", regime.from_gbps},
                                 {"to_gbps", regime.to_gbps},
                                 {"best", regime.best}});
  return json;
}

void print_csv(const std::vector<perf::Advice>& points) {
  const Json columns = rows_of(points.front()).back();  // Plain DDP, the first, has fewer than the others.
  print_csv_line(columns, [](const std::string& key) { return key; });
  for (const perf::Advice& advice : points)
    for (const Json& row : rows_of(advice))
      print_csv_line(columns, [&](const std::string& key) { return csv_cell(row.value(key, Json())); });
}

}  // namespace accordion::cli
