#include <optional>
#include <span>
#include <stdexcept>

#include "accordion/base/json.h"
#include "accordion/base/read_file.h"
#include "accordion/log/checksum.h"
#include "accordion/log/read_run.h"
#include "accordion/log/safetensors.h"
#include "accordion/log/windows.h"
#include "accordion/perf/advice.h"
#include "accordion/report/run_result.h"
#include "accordion/run/decide_again.h"
#include "accordion/run/manifest.h"
#include "accordion/run/recorded.h"
#include "accordion/run/replay.h"
#include "accordion/run/summary.h"
#include "fuzz/targets.h"

namespace accordion::fuzz {
namespace {

const std::vector<std::string> kLayers = {"conv.weight", "fc.weight"};

EpochRecord epoch(int number, const std::vector<double>& errors) {
  EpochRecord record{.epoch = number,
                     .lr = 0.1,
                     .global_batch = 64,
                     .train_loss = 2.5,
                     .test_loss = 2.25,
                     .test_accuracy = 0.5,
                     .test_perplexity = {},
                     .seconds = 1.5,
                     .steps = 10,
                     .payload_bytes = 100,
                     .wire_bytes = 150,
                     .paper_floats = 25,
                     .layers = {}};
  record.windows = {{.window = number, .lr = 0.1, .steps = 10, .layers = {}}};
  record.guard = {
      {.step = 3, .event = "decide", .levels = {0, -1}, .predicted_ms = 1.5, .reason = "it pays"}};
  for (const std::string& name : kLayers)
    record.layers.push_back({.name = name,
                             .elements = 4000,
                             .norm = 1.25,
                             .level = 1,
                             .codec = "topk:keep=0.01",
                             .reason = "stable",
                             .may = 1,
                             .squares = 2.5,
                             .level_errors = errors,
                             .level_bytes = std::vector<double>(errors.size(), 8)});
  record.windows[0].layers = record.layers;
  return record;
}

std::string run_text(const ControlOptions& control, std::size_t levels) {
  const Json config = {{"options", to_json(control)},
                       {"workers", 2},
                       {"tensors", {{{"name", "fc.weight"}, {"shape", {40, 100}}}}}};
  std::string lines;
  for (int i = 0; i < 3; ++i) lines += to_json(epoch(i, std::vector<double>(levels, 0.5))).dump() + "\n";
  return together({config.dump(), lines, R"({"status":"finished","epochs":3})"});
}

// Does all of it, whatever is refused on the way, and then throws the last refusal.
class Attempts {
 public:
  void add(const auto& attempt) {
    try {
      attempt();
    } catch (const Error& error) {
      refusal_ = error;
    }
  }
  void finish() const {
    if (refusal_) throw *refusal_;
  }

 private:
  std::optional<Error> refusal_;
};

// As `accordion decide` does.
void decide(const std::vector<RecordedWindow>& windows, const ControlOptions& control) {
  const std::vector<LayerRecord>& layers = windows[0].layers;
  const auto levels = control_levels("decide", control, total_elements(layers));
  const auto controller = make_controller(control, layers.size(), static_cast<int>(levels.size()));
  decide_again(windows, *controller, levels.size(), control.controller);
}

void parse_run(std::string_view input) {
  const auto files = apart(input, 3);
  const std::filesystem::path folder = scratch("run/config.json", files[0]).parent_path();
  scratch("run/epochs.jsonl", files[1]);
  scratch("run/summary.json", files[2]);
  const Json config = read_run(folder).config;
  Attempts attempts;
  attempts.add([&] { why_not_finished(folder, {.options = to_json(TrainOptions{})}); });
  attempts.add([&] { read_result(folder); });
  attempts.add([&] { recorded_guard(folder); });
  attempts.add([&] { replayed_controller(folder, kLayers); });
  attempts.add([&] { decide(read_run_windows(folder), recorded_control(folder)); });
  attempts.add([&] { recorded_options(config); });
  attempts.add([&] {
    const int workers = recorded_workers(config);
    for (const TensorInfo& tensor : recorded_tensors(config).value_or(std::vector<TensorInfo>()))
      is_compressed(parse_codec("powersgd"), tensor.shape, workers, {});
  });
  attempts.finish();
}

void parse_epoch(std::string_view input) {
  EpochRecord record, again;
  from_json(parse_json(input, "line"), record);
  const std::string text = to_json(record).dump(-1, ' ', false, Json::error_handler_t::replace);
  from_json(parse_json(text, "again"), again);
  require_same(text, to_json(again).dump(-1, ' ', false, Json::error_handler_t::replace),
               "an epoch's record");
  summarise({record, again}, {});
}

void parse_table(std::string_view input) {
  decide(read_csv_windows(scratch("table.csv", input)),
         {.controller = "accordion", .mild = "none", .strong = "topk", .interval = 1});
}

void parse_profile(std::string_view input) {
  const perf::Profile profile = perf::parse_profile(input, "profile");
  const std::string text = perf::profile_text(profile);
  require_same(text, perf::profile_text(perf::parse_profile(text, "again")), "a profile");
  if (profile.models.empty()) return;
  for (const bool published : {false, true})  // One model is as good as all, and far sooner done.
    perf::advise({profile, profile.models.back(), published}, 4, 10);
}

// As resume does; beside the arrays a file holds the states of parts of the program.
void parse_arrays(std::string_view input) {
  const Arrays arrays = parse_safetensors(input, "file");
  std::size_t total = 0;
  for (const auto& [name, array] : arrays) total += array.bytes.size();
  if (total > input.size()) throw std::logic_error("arrays reach beyond their file");
  state_of(arrays, "codec");
}

std::string arrays_text() {
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  State state;
  const StateWriter writer(state);
  writer.put("steps", 7);
  writer.put("residual", std::vector<float>{0.5F, -0.5F});
  writer.put("history", std::string("[1,2]"));
  Arrays arrays = {{"fc.weight", {"F32", {2, 3}, std::as_bytes(std::span(weights))}}};
  add_state(state, "codec", arrays);
  const std::filesystem::path path = scratch("seed.safetensors", "");
  write_safetensors(path, arrays);
  return read_file(path);
}

std::string manifest_seed() {
  Manifest manifest{.position = {.epoch = 1, .epoch_step = 2, .step = 3}, .workers = 1, .files = {}};
  for (const std::string& name : {std::string(kCommonFile), rank_file(0)}) {
    Manifest::File& file = manifest.files.emplace_back();
    file.name = name;
    file.bytes = 4;
    file.sha256 = "ab";
  }
  return manifest_text(manifest);
}

// With the checksum that belongs to it, so that what is behind the check is reached.
void parse_checked_manifest(std::string_view input) {
  Json json = parse_json_object(input, "manifest.json");
  json.erase("sha256");
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string_view whole = text;
  json["sha256"] = sha256({&whole, 1});
  const Manifest manifest =
      parse_manifest(json.dump(-1, ' ', false, Json::error_handler_t::replace), "manifest.json");
  const std::string again = manifest_text(manifest);
  require_same(again, manifest_text(parse_manifest(again, "again")), "a manifest");
}

}  // namespace

std::vector<Target> record_targets() {
  const ControlOptions accordion{.controller = "accordion", .mild = "none", .strong = "topk"};
  const ControlOptions lgreco{
      .controller = "lgreco", .levels = "none;topk:keep=0.1;topk:keep=0.01", .resolution = 10};
  const std::string table = "epoch,layer,norm,lr\n0,a,1.5,0.1\n0,b,2,0.1\n1,a,1.25,0.1\n1,b,nan,0.1\n";
  const std::string profile =
      R"({"format":"accordion-profile","version":1,"network":{"ranks":4,"bandwidth_gbps":10,
    "sum":{"latency_us":20,"bandwidth_gbps":9,"small":{"below_bytes":1000,"latency_us":9,"bandwidth_gbps":5}},
    "gather":{"latency_us":20,"bandwidth_gbps":9,"samples":[[1000,20]]},"scatter":{"latency_us":20,"bandwidth_gbps":9}},
    "models":[{"model":"m","batch":8,"parameters":1000000,"backward_ms":20,"rest_ms":5,"buckets":[{"ready_ms":9,
    "elements":1000000}],"codecs":[{"codec":"topk","encode_ms":1,"decode_ms":1,"rounds":[{"collective":"gather","bytes":
    80000}]}]}],"memory_gb":4,"sources":{"models":"assumed"}})";
  return {
      {"run", {run_text(accordion, 0), run_text(lgreco, 3)}, parse_run},
      {"epoch", {to_json(epoch(0, {})).dump(), to_json(epoch(7, {1, 2})).dump()}, parse_epoch},
      {"table", {table}, parse_table},
      {"safetensors", {arrays_text()}, parse_arrays},
      {"manifest", {manifest_seed()}, parse_checked_manifest},
      {"profile", {profile, source_file("profiles/p3.8xlarge-v100.json")}, parse_profile},
  };
}

}  // namespace accordion::fuzz
