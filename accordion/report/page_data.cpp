#include "accordion/report/page_data.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "accordion/base/json.h"
#include "accordion/base/version.h"
#include "accordion/report/comparison_text.h"

namespace accordion {
namespace {

// NaN and what is not there are null.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}
Json number(const std::optional<double>& value) {
  return value ? number(*value) : Json();
}

template <class Of>
Json column(const std::vector<EpochRecord>& epochs, Of of) {
  Json values = Json::array();
  for (const EpochRecord& epoch : epochs) values.push_back(of(epoch));
  return values;
}

// One option of the run, as text or number; null where it was not recorded.
Json option(const ReportedRun& run, const char* name) {
  const auto options = run.config.find("options");
  return options != run.config.end() && options->is_object() ? options->value(name, Json()) : Json();
}

// Only Accordion's rule names critical regimes: there its levels are the mildest, or its batches small.
class Regimes {
 public:
  explicit Regimes(const ReportedRun& run) {
    const Json controller = option(run, "controller");
    const Json batch = option(run, "batch_mild");
    const bool rule = controller == "accordion" || controller == "joint";
    by_batch_ = controller == "accordion" && batch.is_number_integer() && batch != 0;
    by_level_ = rule && !by_batch_;
    if (by_batch_) batch_ = batch.get<std::int64_t>();
  }

  bool known() const { return by_level_ || by_batch_; }
  Json critical(const LayerRecord& layer, const EpochRecord& epoch) const {
    if (by_batch_) return epoch.global_batch == batch_;
    return by_level_ ? Json(layer.may.value_or(layer.level) == 0) : Json();
  }

 private:
  bool by_level_ = false, by_batch_ = false;
  std::int64_t batch_ = 0;
};

// A run's layers over its epochs, or over the windows of steps that its controller watched: a row a layer. What was in force is
// one of a few states.
class LayerTable {
 public:
  explicit LayerTable(const ReportedRun& run) : regimes_(run) {
    for (const EpochRecord& epoch : run.epochs) {
      if (epoch.windows.empty()) add(epoch.layers, epoch);
      for (const WindowRecord& window : epoch.windows) add(window.layers, epoch, window.window);
      for (const LayerRecord& layer : epoch.layers) {
        Json& bytes = rows_[row_of(layer)]["bytes"];
        bytes = (bytes.is_number() ? bytes.get<std::int64_t>() : 0) + layer.payload_bytes.value_or(0);
        has_bytes_ = has_bytes_ || layer.payload_bytes;
      }
    }
  }

  void write(Json& to) {
    for (Json& row : rows_) pad(row, points_.size());
    to["points"] = {{"unit", windows_ ? "window" : "epoch"}, {"at", points_}};
    to["layers"] = rows_;
    to["states"] = states_;
    to["critical_known"] = regimes_.known();
    to["bytes_known"] = has_bytes_;
  }

 private:
  std::size_t row_of(const LayerRecord& layer) {
    const auto [place, is_new] = places_.try_emplace(layer.name, rows_.size());
    if (is_new)
      rows_.push_back({{"name", layer.name},
                       {"elements", layer.elements},
                       {"norm", Json::array()},
                       {"state", Json::array()}});
    return place->second;
  }

  static void pad(Json& row, std::size_t count) {
    for (const char* key : {"norm", "state"})
      while (row[key].size() < count) row[key].push_back(nullptr);
  }

  void add(const std::vector<LayerRecord>& layers, const EpochRecord& epoch, int window = -1) {
    windows_ = windows_ || window >= 0;
    for (const LayerRecord& layer : layers) {
      Json& row = rows_[row_of(layer)];
      pad(row, points_.size());
      if (row["state"].size() > points_.size()) continue;  // Two layers of one name.
      row["norm"].push_back(number(layer.norm));
      row["state"].push_back(state_of(layer, epoch));
    }
    points_.push_back(window >= 0 ? window : epoch.epoch);
  }

  std::size_t state_of(const LayerRecord& layer, const EpochRecord& epoch) {
    Json state = {{"level", layer.level},
                  {"codec", layer.codec},
                  {"reason", layer.reason},
                  {"critical", regimes_.critical(layer, epoch)}};
    if (layer.may) state["may"] = *layer.may;
    const auto [place, is_new] =
        known_.try_emplace(state.dump(-1, ' ', false, Json::error_handler_t::replace), states_.size());
    if (is_new) states_.push_back(std::move(state));
    return place->second;
  }

  Regimes regimes_;
  bool windows_ = false, has_bytes_ = false;
  std::vector<int> points_;
  std::map<std::string, std::size_t> places_, known_;
  std::vector<Json> rows_, states_;
};

Json split_columns(const std::vector<EpochRecord>& epochs) {
  const auto part = [&](double StepSplit::*of) {
    return column(epochs, [&](const EpochRecord& epoch) {
      return epoch.step_split ? number((*epoch.step_split).*of) : Json();
    });
  };
  return {{"compute_ms", part(&StepSplit::compute_ms)},
          {"encode_ms", part(&StepSplit::encode_ms)},
          {"wire_ms", part(&StepSplit::wire_ms)},
          {"decode_ms", part(&StepSplit::decode_ms)},
          {"busy_wire_ms", part(&StepSplit::busy_wire_ms)}};
}

Json epoch_columns(const std::vector<EpochRecord>& epochs) {
  using Record = const EpochRecord&;
  return {{"epoch", column(epochs, [](Record e) { return e.epoch; })},
          {"lr", column(epochs, [](Record e) { return number(e.lr); })},
          {"schedule_lr", column(epochs, [](Record e) { return number(e.schedule_lr); })},
          {"global_batch", column(epochs, [](Record e) { return e.global_batch; })},
          {"batch_reason",
           column(epochs, [](Record e) { return e.batch_reason ? Json(*e.batch_reason) : Json(); })},
          {"train_loss", column(epochs, [](Record e) { return number(e.train_loss); })},
          {"test_loss", column(epochs, [](Record e) { return number(e.test_loss); })},
          {"test_accuracy", column(epochs, [](Record e) { return number(e.test_accuracy); })},
          {"test_perplexity", column(epochs, [](Record e) { return number(e.test_perplexity); })},
          {"seconds", column(epochs, [](Record e) { return number(e.seconds); })},
          {"steps", column(epochs, [](Record e) { return e.steps; })},
          {"dropped_steps", column(epochs, [](Record e) { return e.dropped_steps; })},
          {"payload_bytes", column(epochs, [](Record e) { return e.payload_bytes; })},
          {"wire_bytes", column(epochs, [](Record e) { return e.wire_bytes; })},
          {"input_wait_seconds", column(epochs, [](Record e) { return number(e.input_wait_seconds); })},
          {"hidden_share", column(epochs, [](Record e) { return number(e.hidden_share); })},
          {"hessian_eigenvalue", column(epochs, [](Record e) { return number(e.hessian_eigenvalue); })},
          {"split", split_columns(epochs)}};
}

Json guard_events(const std::vector<EpochRecord>& epochs) {
  Json events = Json::array();
  for (const EpochRecord& epoch : epochs)
    for (const GuardEvent& event : epoch.guard)
      events.push_back({{"epoch", epoch.epoch},
                        {"step", event.step},
                        {"event", event.event},
                        {"predicted_ms", number(event.predicted_ms)},
                        {"measured_ms", number(event.measured_ms)},
                        {"reason", event.reason}});
  return events;
}

Json run_data(const ReportedRun& run, std::size_t setting, const Commands& commands) {
  Json data = {{"setting", setting},
               {"seed", run.seed()},
               {"folder", run.folder.string()},
               {"status", run.status()},
               {"problems", run.problems},
               {"config", run.config},
               {"summary", run.summary ? *run.summary : Json()},
               {"command", commands.run(run.config)},
               {"epochs", epoch_columns(run.epochs)},
               {"guard", guard_events(run.epochs)}};
  LayerTable(run).write(data);
  return data;
}

}  // namespace

Json page_data(const ReportedRuns& reported, const Commands& commands) {
  Json settings = Json::array(), runs = Json::array(), made = Json::array(), comparison;
  for (std::size_t s = 0; s < reported.settings.size(); ++s) {
    settings.push_back(reported.settings[s].name);
    for (const ReportedRun& run : reported.settings[s].runs) runs.push_back(run_data(run, s, commands));
  }
  for (const auto& [folder, what] : reported.comparisons)
    made.push_back({{"folder", folder.string()},
                    {"recipe", what.recipe},
                    {"command", commands.comparison(folder, what)}});
  if (const auto compared = reported.comparison())
    comparison = {{"rows", comparison_json(*compared)}, {"sentence", reading(*compared)}};
  return {{"version", kVersion},          {"settings", settings}, {"runs", runs},
          {"comparison", comparison},     {"comparisons", made},  {"over", reported.over()},
          {"problems", reported.problems}};
}

}  // namespace accordion
