// accordion decide: recorded norms and learning rates through a controller.
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "accordion/adapt/control.h"
#include "accordion/base/json.h"
#include "accordion/log/read_run.h"
#include "accordion/log/windows.h"
#include "accordion/run/decide_again.h"
#include "accordion/run/recorded.h"
#include "accordion/run/replay.h"
#include "cli/fields.h"
#include "cli/run_tensors.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

struct DecideArguments {
  ControlOptions control;
  std::string folder, csv;
  bool json = false;
};

std::vector<RecordedWindow> read_windows(const DecideArguments& arguments) {
  if (arguments.folder.empty() == arguments.csv.empty())
    throw UsageError("decide: expected a run folder, or --csv FILE with columns epoch,layer,norm,lr");
  return arguments.csv.empty() ? read_run_windows(arguments.folder) : read_csv_windows(arguments.csv);
}

// Errors were recorded for the run's levels, and say nothing about others.
void require_levels_of_run(const DecideArguments& arguments, const std::vector<CodecOptions>& levels,
                           std::size_t parameters) {
  const auto recorded = control_levels("decide", recorded_control(arguments.folder), parameters);
  const auto text = [](const std::vector<CodecOptions>& list) {
    std::string result;
    for (const CodecOptions& level : list) result += (result.empty() ? "" : ";") + codec_text(level);
    return result;
  };
  if (text(recorded) != text(levels))
    throw UsageError("decide: levels " + text(levels) + ", expected those whose errors the run recorded, " +
                     text(recorded));
}

// What becomes of a layer at a level: the run's model says which tensors are not worth compressing. Of a
// table's layers nobody knows.
class Travel {
 public:
  Travel(const DecideArguments& arguments, const std::vector<CodecOptions>& levels,
         const std::vector<LayerRecord>& layers)
      : dense_(layers.size(), std::vector<bool>(levels.size())) {
    for (const CodecOptions& level : levels) codecs_.push_back(codec_text(level));
    if (arguments.folder.empty()) return;
    const Json config = read_run(arguments.folder).config;
    const std::vector<TensorInfo> tensors = run_tensors(config);
    const int workers = recorded_workers(config);
    for (std::size_t i = 0; i < layers.size(); ++i)
      for (const TensorInfo& tensor : tensors)
        for (std::size_t l = 0; tensor.name == layers[i].name && l < levels.size(); ++l)
          dense_[i][l] = !std::holds_alternative<NoneOptions>(levels[l]) &&
                         !compresses(arguments.control, levels[l], tensor, workers);
  }

  bool dense(std::size_t layer, int level) const { return dense_[layer][static_cast<std::size_t>(level)]; }
  std::string codec(std::size_t layer, int level) const {
    return dense(layer, level) ? "none" : codecs_[static_cast<std::size_t>(level)];
  }

 private:
  std::vector<std::vector<bool>> dense_;  // By layer and level.
  std::vector<std::string> codecs_;
};

int decide(const DecideArguments& arguments) {
  check_control("decide", arguments.control);
  const std::vector<RecordedWindow> windows = read_windows(arguments);
  const std::vector<LayerRecord>& layers = windows[0].layers;
  const std::vector<CodecOptions> levels =
      control_levels("decide", arguments.control, total_elements(layers));
  const auto controller = make_controller(arguments.control, layers.size(), static_cast<int>(levels.size()));
  const bool tried = std::any_of(layers.begin(), layers.end(),
                                 [](const LayerRecord& layer) { return !layer.level_errors.empty(); });
  if (controller->needs().trials && tried) require_levels_of_run(arguments, levels, total_elements(layers));
  const Travel travel(arguments, levels, layers);
  const std::vector<Decision> decisions =
      decide_again(windows, *controller, levels.size(), arguments.control.controller);

  Json rows = Json::array();
  std::size_t width = 5;
  for (const LayerRecord& layer : layers) width = std::max(width, layer.name.size());
  const bool batches = arguments.control.controls_batch();
  if (!arguments.json)
    std::printf("%5s  %-*s %5s  %-24s %s\n", "epoch", static_cast<int>(width), "layer", "level", "codec",
                "reason");
  for (std::size_t e = 0; e < decisions.size(); ++e) {
    const Decision& decision = decisions[e];
    if (batches && !arguments.json)
      std::printf("%5zu  batch %lld: %s\n", e, static_cast<long long>(decision.batch),
                  decision.batch_reason.c_str());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const int level = decision.levels[i];
      const std::string codec = travel.codec(i, level);
      const std::string reason = travel.dense(i, level) ? "not worth compressing" : decision.reasons[i];
      if (!arguments.json) {
        std::printf("%5zu  %-*s %5d  %-24s %s\n", e, static_cast<int>(width), layers[i].name.c_str(), level,
                    codec.c_str(), reason.c_str());
        continue;
      }
      rows.push_back(
          {{"epoch", e}, {"layer", layers[i].name}, {"level", level}, {"codec", codec}, {"reason", reason}});
      if (!batches) continue;
      rows.back()["batch"] = decision.batch;
      rows.back()["batch_reason"] = decision.batch_reason;
    }
  }
  if (arguments.json) std::cout << rows.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  return 0;
}

// A run is decided again as it was, but for the options that are given. Its windows are what they are.
void take_options_of_run(const CLI::App& verb, DecideArguments& arguments) {
  if (arguments.folder.empty()) return;
  const ControlOptions recorded = recorded_control(arguments.folder);
  const std::vector<RecipeEntry> given = given_fields(verb, "decide", arguments.control);
  const auto gives = [&](const std::string& name) {
    return std::any_of(given.begin(), given.end(),
                       [&](const RecipeEntry& entry) { return entry.name == name; });
  };
  ControlOptions control =
      gives("controller") ? for_controller(recorded, arguments.control.controller) : recorded;
  // One way of naming levels takes the place of another.
  if (gives("codec") || gives("levels")) control.mild = control.strong = "";
  if (gives("codec") || gives("mild") || gives("strong")) control.levels = "";
  if (gives("levels") || gives("mild") || gives("strong")) control.codec = "none";
  for (const RecipeEntry& entry : given) set_field(entry, control);
  control.window = recorded.window;
  arguments.control = control;
}

std::string list_of_controllers() {
  std::size_t width = 0;
  for (const std::string& name : controller_names()) width = std::max(width, name.size());
  std::string text = "Controllers:\n";
  for (const ControllerKind& kind : controllers())
    text += "  " + kind.name + std::string(width - kind.name.size() + 2, ' ') + kind.help + "\n";
  return text;
}

}  // namespace

Run add_decide(CLI::App& verb) {
  auto arguments = std::make_shared<DecideArguments>();
  verb.footer(list_of_controllers());
  add_fields(verb, "decide", arguments->control);
  verb.add_option("folder", arguments->folder, "Run folder.");
  verb.add_option("--csv", arguments->csv, "Table with columns epoch,layer,norm,lr instead of a run folder.");
  verb.add_flag("--json", arguments->json, "One JSON array on standard output.");
  return [arguments, &verb] {
    take_options_of_run(verb, *arguments);
    return decide(*arguments);
  };
}

}  // namespace accordion::cli
