// accordion decide: recorded norms and learning rates through a controller.
#include <cstdio>
#include <iostream>

#include "accordion/adapt/control.h"
#include "accordion/log/norms.h"
#include "cli/fields.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

struct DecideArguments {
  ControlOptions control;
  std::string folder, csv;
  bool json = false;
};

RecordedNorms read_norms(const DecideArguments& arguments) {
  if (arguments.folder.empty() == arguments.csv.empty())
    throw UsageError("decide: expected a run folder, or --csv FILE with columns epoch,layer,norm,lr");
  return arguments.csv.empty() ? read_run_norms(arguments.folder) : read_csv_norms(arguments.csv);
}

// The decision in force during each epoch.
std::vector<Decision> replay(const RecordedNorms& recorded, Controller& controller) {
  std::vector<Decision> decisions = {controller.first()};
  for (std::size_t e = 0; e + 1 < recorded.epochs.size(); ++e) {
    const RecordedNorms::Epoch& epoch = recorded.epochs[e];
    decisions.push_back(controller.decide({epoch.epoch, epoch.lr, recorded.epochs[e + 1].lr, epoch.norms}));
  }
  return decisions;
}

int decide(const DecideArguments& arguments) {
  check("decide", arguments.control);
  const std::vector<CodecOptions> levels = control_levels("decide", arguments.control);
  const RecordedNorms recorded = read_norms(arguments);
  const auto controller = make_controller(arguments.control, recorded.layers.size());
  const std::vector<Decision> decisions = replay(recorded, *controller);

  Json rows = Json::array();
  std::size_t width = 5;
  for (const std::string& layer : recorded.layers) width = std::max(width, layer.size());
  if (!arguments.json)
    std::printf("%5s  %-*s %5s  %-24s %s\n", "epoch", static_cast<int>(width), "layer", "level", "codec",
                "reason");
  for (std::size_t e = 0; e < decisions.size(); ++e)
    for (std::size_t i = 0; i < recorded.layers.size(); ++i) {
      const int level = decisions[e].levels[i];
      const std::string codec = codec_text(levels[static_cast<std::size_t>(level)]);
      if (arguments.json)
        rows.push_back({{"epoch", e},
                        {"layer", recorded.layers[i]},
                        {"level", level},
                        {"codec", codec},
                        {"reason", decisions[e].reasons[i]}});
      else
        std::printf("%5zu  %-*s %5d  %-24s %s\n", e, static_cast<int>(width), recorded.layers[i].c_str(),
                    level, codec.c_str(), decisions[e].reasons[i].c_str());
    }
  if (arguments.json) std::cout << rows.dump(2) << "\n";
  return 0;
}

}  // namespace

Run add_decide(CLI::App& verb) {
  auto arguments = std::make_shared<DecideArguments>();
  add_fields(verb, "decide", arguments->control);
  verb.add_option("folder", arguments->folder, "Run folder.");
  verb.add_option("--csv", arguments->csv, "Table with columns epoch,layer,norm,lr instead of a run folder.");
  verb.add_flag("--json", arguments->json, "One JSON array on standard output.");
  return [arguments] { return decide(*arguments); };
}

}  // namespace accordion::cli
