#include "accordion/run/replay.h"

#include "accordion/adapt/replay.h"
#include "accordion/base/json.h"
#include "accordion/log/epoch_record.h"
#include "accordion/log/read_run.h"
#include "accordion/log/run_folder.h"
#include "accordion/log/windows.h"

namespace accordion {

ControlOptions recorded_control(const std::filesystem::path& folder) {
  const Json config = read_run(folder).config;
  const auto options = config.find("options");
  if (options == config.end() || !options->is_object() || !options->contains("controller"))
    throw UsageError((folder / kConfigFile).string() +
                     ": no controller among its options, expected the "
                     "run folder of accordion train");
  ControlOptions control;
  try {
    from_json(*options, control);
  } catch (const Error& error) {
    throw UsageError((folder / kConfigFile).string() + ": " + error.what());
  }
  check_control(folder.string(), control);
  return control;
}

std::vector<GuardEvent> recorded_guard(const std::filesystem::path& folder) {
  std::vector<GuardEvent> events;
  for (const EpochRecord& epoch : epoch_records(read_run(folder).epochs, (folder / kEpochsFile).string()))
    events.insert(events.end(), epoch.guard.begin(), epoch.guard.end());
  return events;
}

TrainOptions resolve(const TrainOptions& given) {
  TrainOptions options = given;
  if (!given.replay.empty()) {
    if (to_json(given.control) != to_json(ControlOptions{}) || given.guard != TrainOptions{}.guard ||
        !given.profile.empty())
      throw UsageError("train: replay=" + given.replay +
                       " brings the options of its controller and guard along, expected none beside it");
    options.control = recorded_control(given.replay);
    const Json recorded = read_run(given.replay).config.at("options");
    if (const auto guard = recorded.find("guard"); guard != recorded.end() && guard->is_string())
      options.guard = guard->get<std::string>();
  }
  check_train_options(options);
  return options;
}

std::unique_ptr<Controller> replayed_controller(const std::filesystem::path& folder,
                                                const std::vector<std::string>& layers) {
  const std::vector<RecordedWindow> windows = read_run_windows(folder);
  std::vector<Decision> decisions;
  for (const RecordedWindow& window : windows) {
    Decision decision{.batch = window.batch_reason.empty() ? 0 : window.global_batch,
                      .batch_reason = window.batch_reason};
    for (const LayerRecord& layer : window.layers) {
      decision.levels.push_back(layer.may.value_or(layer.level));
      decision.reasons.push_back("replayed: " + layer.reason);
    }
    decisions.push_back(std::move(decision));
  }
  const std::vector<LayerRecord>& recorded = windows[0].layers;
  for (std::size_t i = 0; i < std::max(layers.size(), recorded.size()); ++i) {
    const std::string there = i < recorded.size() ? recorded[i].name : "none";
    const std::string here = i < layers.size() ? layers[i] : "none";
    if (there != here)
      throw UsageError("train: replay=" + folder.string() + ": its layer " + std::to_string(i) + " is " +
                       there + ", expected " + here + " as in this run's model");
  }
  return make_replay(std::move(decisions));
}

std::unique_ptr<Controller> run_controller(const TrainOptions& options,
                                           const std::vector<std::string>& layers, int levels) {
  return options.replay.empty() ? make_controller(options.control, layers.size(), levels)
                                : replayed_controller(options.replay, layers);
}

}  // namespace accordion
