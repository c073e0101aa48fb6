// accordion traffic: what a run would send, with no training and no data set.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <tuple>

#include "accordion/base/json.h"
#include "accordion/base/names.h"
#include "accordion/data/dataset.h"
#include "accordion/exchange/forecast.h"
#include "accordion/log/progress_text.h"
#include "accordion/models/zoo.h"
#include "accordion/report/aligned.h"
#include "accordion/run/forecast.h"
#include "accordion/run/replay.h"
#include "accordion/run/shapes.h"
#include "accordion/train/data_options.h"
#include "cli/comparison_recipe.h"
#include "cli/fields.h"
#include "cli/run_tensors.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

// Those of `train`, so that its command and its recipe need only another verb.
struct TrafficOptions {
  TrainOptions train;
  LaunchOptions launch;

  void fields(auto&& field) {
    train.fields(field);
    launch.fields(field);
  }
};

struct TrafficArguments {
  TrafficOptions options;  // Only to have them on the command line: which were given is what counts.
  std::string recipe;
  std::int64_t steps = 0;
  bool tensors = false, json = false;
};

// One level of a tensor, in one step of the first epoch.
struct TensorLevel {
  std::string codec;  // `none` where the tensor goes dense.
  std::uint64_t payload_bytes;
};

struct TensorRow {
  std::string name;
  std::size_t elements;
  std::vector<TensorLevel> levels;  // Mildest first.
};

struct Row {
  std::string setting;  // Empty where there is only one.
  TrainOptions options;
  int workers;
  bool by_shapes;
  std::string codec;
  RunForecast forecast;
  std::vector<TensorRow> tensors;  // Where they are asked for.
};

// Models of which there are no weights to train. Throws UsageError for one that nobody knows.
bool known_by_shapes_only(const std::string& model) {
  const std::string name = model.substr(0, model.find(':'));
  const std::vector<std::string> zoo = model_names();
  std::vector<std::string> all = zoo;
  for (const std::string& shapes : shape_names())
    if (std::find(zoo.begin(), zoo.end(), shapes) == zoo.end()) all.push_back(shapes);
  const auto found = std::find(all.begin(), all.end(), name);
  if (found == all.end()) throw UsageError(unknown_name("model", name, all));
  return found - all.begin() >= static_cast<std::ptrdiff_t>(zoo.size());
}

TrainOptions checked(const TrainOptions& given, int workers, std::int64_t steps) {
  const bool by_shapes = known_by_shapes_only(given.model);
  const TrainOptions options = by_shapes ? resolve(given) : check_run_options(given, workers);
  if (by_shapes) model_shapes(options.model);  // Has no options.
  if (by_shapes && steps == 0)
    throw UsageError("traffic: model=" + options.model +
                     " is known by its shapes only, expected --steps, of an epoch");
  if (steps == 0) check_samples(options, dataset_facts(options.data));
  if (steps > 0 && options.control.controls_batch())
    throw UsageError("traffic: steps=" + std::to_string(steps) +
                     " beside batch-mild, expected none: steps follow from the batch size");
  return options;
}

// Building a network takes longer than all the rest, and settings mostly share one.
class Models {
 public:
  const std::vector<TensorInfo>& tensors(const TrainOptions& options, bool by_shapes) {
    const auto [found, fresh] =
        known_.try_emplace({options.model, by_shapes ? "" : options.data, options.vocabulary});
    if (fresh) found->second = by_shapes ? model_shapes(options.model) : run_tensors(options);
    return found->second;
  }

 private:
  std::map<std::tuple<std::string, std::string, int>, std::vector<TensorInfo>> known_;
};

std::string levels_text(const std::vector<CodecOptions>& levels) {
  std::string text;
  for (const CodecOptions& level : levels) text += (text.empty() ? "" : ";") + codec_text(level);
  return text;
}

// As it was asked for, levels mildest first; or what a controller makes itself.
std::string codec_of(const ControlOptions& control, std::size_t parameters) {
  if (!control.levels.empty()) return control.levels;
  if (!control.mild.empty()) return control.mild + ";" + control.strong;
  if (find_controller(control.controller).levels == TakesLevels::kOwn)
    return levels_text(control_levels("train", control, parameters));
  return control.codec;
}

std::vector<TensorRow> tensor_rows(const TrainOptions& options, const std::vector<TensorInfo>& tensors,
                                   int workers) {
  const auto levels = control_levels("train", options.control, parameter_count(tensors));
  const StepForecast step(tensors, {.levels = levels, .published = options.control.published()}, workers, 1);
  std::vector<TensorRow> rows;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TensorRow& row = rows.emplace_back(TensorRow{tensors[i].name, tensors[i].shape.count(), {}});
    for (std::size_t l = 0; l < levels.size(); ++l)
      row.levels.push_back(
          {compresses(options.control, levels[l], tensors[i], workers) ? codec_text(levels[l]) : "none",
           step.tensor(i, static_cast<int>(l), 0).most.payload_bytes});
  }
  return rows;
}

Row forecast_row(const std::string& setting, const TrainOptions& given, int workers,
                 const TrafficArguments& arguments, Models& models) {
  const std::int64_t steps = arguments.steps;
  Row row{.setting = setting,
          .options = checked(given, workers, steps),
          .workers = workers,
          .by_shapes = known_by_shapes_only(given.model),
          .codec = "",
          .forecast = {},
          .tensors = {}};
  const StepsInEpoch steps_of = [&](std::int64_t batch) {
    return steps > 0 ? steps : steps_in_epoch(row.options, dataset_facts(row.options.data), workers, batch);
  };
  const std::vector<TensorInfo>& tensors = models.tensors(row.options, row.by_shapes);
  row.codec = codec_of(row.options.control, parameter_count(tensors));
  row.forecast = forecast_run(row.options, tensors, workers, steps_of);
  if (arguments.tensors) row.tensors = tensor_rows(row.options, tensors, workers);
  return row;
}

// Given on the command line, these are the setting: those of a recipe do not count.
bool chooses_setting(const std::vector<RecipeEntry>& given) {
  constexpr std::string_view kChoice[] = {"codec", "controller", "mild", "strong", "levels", "replay"};
  return std::any_of(given.begin(), given.end(), [&](const RecipeEntry& entry) {
    return std::find(std::begin(kChoice), std::end(kChoice), entry.name) != std::end(kChoice);
  });
}

std::vector<Row> forecast_rows(const TrafficArguments& arguments, std::vector<RecipeEntry> given) {
  Models models;
  const std::vector<RecipeSection> sections =
      arguments.recipe.empty() ? std::vector<RecipeSection>(1) : read_recipe(arguments.recipe);
  if (sections.size() == 1 || chooses_setting(given)) {
    TrafficOptions options;
    for (const RecipeEntry& entry : sections[0].entries)
      if (entry.name != "seeds" || sections.size() == 1) set_field(entry, options);
    for (const RecipeEntry& entry : given) set_field(entry, options);
    return {forecast_row("", options.train, options.launch.workers, arguments, models)};
  }
  std::erase_if(given, [](const RecipeEntry& entry) { return given_by_compare(entry.name); });
  const ComparisonRecipe recipe =
      read_comparison(arguments.recipe, given, [&](const SettingOptions& options) {
        checked(options.train, options.launch.workers, arguments.steps);
      });
  std::vector<Row> rows;
  for (const Setting& setting : recipe.settings)
    rows.push_back(
        forecast_row(setting.name, setting.options.train, setting.options.launch.workers, arguments, models));
  return rows;
}

std::string controller_of(const TrainOptions& options) {
  return options.replay.empty() ? options.control.controller : "replay";
}

Json counts(const RunForecast::Total& total) {
  return {{"steps", total.steps},
          {"payload_bytes", total.traffic.payload_bytes},
          {"wire_bytes", total.traffic.wire_bytes},
          {"paper_floats", total.traffic.paper_floats}};
}

Json to_json(const Row& row) {
  Json json = Json::object();
  if (!row.setting.empty()) json["setting"] = row.setting;
  json["model"] = row.options.model;
  json["data"] = row.by_shapes ? Json() : Json(row.options.data);
  json["codec"] = row.codec;
  json["controller"] = controller_of(row.options);
  json["workers"] = row.workers;
  json["epochs"] = row.options.epochs;
  json.update(counts(row.forecast.most));
  json["exact"] = row.forecast.exact();
  if (!row.forecast.exact()) json["least"] = counts(row.forecast.least);
  for (const TensorRow& tensor : row.tensors) {
    Json levels = Json::array();
    for (const TensorLevel& level : tensor.levels)
      levels.push_back({{"codec", level.codec}, {"payload_bytes", level.payload_bytes}});
    json["tensors"].push_back({{"name", tensor.name}, {"elements", tensor.elements}, {"levels", levels}});
  }
  return json;
}

// Millions as long as the published tables have them in millions.
std::string floats_text(std::uint64_t floats) {
  char text[40];
  const auto value = static_cast<double>(floats);
  if (floats < 10000)
    return std::to_string(floats);
  else if (value < 1e10)
    std::snprintf(text, sizeof text, "%.2f M", value / 1e6);
  else
    std::snprintf(text, sizeof text, "%.2f B", value / 1e9);
  return text;
}

std::string ratio_text(std::uint64_t first, std::uint64_t floats) {
  if (floats == 0) return "-";
  char text[40];
  const double ratio = static_cast<double>(first) / static_cast<double>(floats);
  std::snprintf(text, sizeof text, ratio < 99.95 ? "%.3gx" : "%.0fx", ratio);
  return text;
}

std::string run_text(const Row& row) {
  return row.options.model + (row.by_shapes ? "" : " on " + row.options.data) + ", " +
         std::to_string(row.workers) + (row.workers == 1 ? " worker, " : " workers, ") +
         std::to_string(row.options.epochs) + (row.options.epochs == 1 ? " epoch" : " epochs");
}

std::string range_text(const std::string& least, const std::string& most) {
  return least == most ? most : least + " to " + most;
}

Cells cells_of(const Row& row, const Row& first) {
  const RunForecast::Total &least = row.forecast.least, &most = row.forecast.most;
  const std::uint64_t base = first.forecast.most.traffic.paper_floats;
  const std::string who = controller_of(row.options);
  const std::string codec = row.codec + (who == ControlOptions{}.controller ? "" : ", " + who);
  return {
      row.setting.empty() ? codec : row.setting,
      range_text(std::to_string(least.steps), std::to_string(most.steps)),
      range_text(bytes_text(least.traffic.payload_bytes), bytes_text(most.traffic.payload_bytes)),
      range_text(bytes_text(least.traffic.wire_bytes), bytes_text(most.traffic.wire_bytes)),
      range_text(floats_text(least.traffic.paper_floats), floats_text(most.traffic.paper_floats)),
      range_text(ratio_text(base, most.traffic.paper_floats), ratio_text(base, least.traffic.paper_floats))};
}

void print_lines(std::vector<Cells> lines) {
  align(lines);
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) std::printf("%s%s", i == 0 ? "" : "  ", line[i].c_str());
    std::printf("\n");
  }
}

void print_tensors(const Row& row) {
  std::printf("\n%sEach tensor in a step, mildest level first:\n\n",
              row.setting.empty() ? "" : (row.setting + ". ").c_str());
  std::vector<Cells> lines = {{"tensor", "elements"}};
  for (std::size_t l = 0; l < row.tensors[0].levels.size(); ++l)
    lines[0].insert(lines[0].end(), {"codec", "payload"});
  for (const TensorRow& tensor : row.tensors) {
    lines.push_back({tensor.name, std::to_string(tensor.elements)});
    for (const TensorLevel& level : tensor.levels)
      lines.back().insert(lines.back().end(), {level.codec, bytes_text(level.payload_bytes)});
  }
  print_lines(std::move(lines));
}

void print_table(const std::vector<Row>& rows) {
  const bool one_run = std::all_of(rows.begin(), rows.end(),
                                   [&](const Row& row) { return run_text(row) == run_text(rows[0]); });
  std::printf("%sEach worker sends, in the whole run:\n\n",
              one_run ? (run_text(rows[0]) + ". ").c_str() : "");
  std::vector<Cells> lines = {{"setting", "steps", "payload", "on the wire", "floats", "ratio"}};
  for (const Row& row : rows) {
    lines.push_back(cells_of(row, rows[0]));
    if (!one_run) lines.back()[0] += " (" + run_text(row) + ")";
  }
  print_lines(std::move(lines));
  if (std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.forecast.exact(); }))
    std::printf("\n\"a to b\": it depends on the gradients.\n");
  for (const Row& row : rows)
    if (!row.tensors.empty()) print_tensors(row);
}

int traffic(const TrafficArguments& arguments, const std::vector<RecipeEntry>& given) {
  const std::vector<Row> rows = forecast_rows(arguments, given);
  if (!arguments.json) return print_table(rows), 0;
  Json json = Json::array();
  for (const Row& row : rows) json.push_back(to_json(row));
  const bool single = rows.size() == 1 && rows[0].setting.empty();
  std::cout << (single ? json[0] : json).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  return 0;
}

}  // namespace

Run add_traffic(CLI::App& verb) {
  auto arguments = std::make_shared<TrafficArguments>();
  verb.add_option(
      "--recipe", arguments->recipe,
      "TOML file of `train` or `compare`; a row for each of its settings, unless the command line "
      "has a codec or controller.");
  verb.add_option(
      "--steps", arguments->steps,
      "Steps of an epoch, over what follows from data and batch; for models known by their shapes "
      "only (resnet50, resnet101, bert-base) there is nothing else.");
  verb.add_flag("--tensors", arguments->tensors,
                "Also each tensor: its codec, `none` where it goes dense, and what it sends in a step.");
  verb.add_flag("--json", arguments->json, "One JSON object, or an array of one for each setting.");
  add_fields(verb, "traffic", arguments->options);
  return [arguments, &verb] {
    if (verb.get_option("--steps")->count() > 0)
      check_number("traffic", "steps", static_cast<double>(arguments->steps), at_least(1));
    return traffic(*arguments, given_fields(verb, "traffic", arguments->options));
  };
}

}  // namespace accordion::cli
