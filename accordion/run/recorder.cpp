#include "accordion/run/recorder.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <utility>

#include "accordion/base/json.h"
#include "accordion/base/version.h"
#include "accordion/launch/settings.h"
#include "accordion/log/read_run.h"
#include "accordion/run/summary.h"

namespace accordion {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

}  // namespace

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

Json run_config(const Json& options, int workers, int threads, const std::string& torch_version) {
  return {{"version", kVersion},  {"torch", torch_version},
          {"started", utc_now()}, {"machine", {{"cpu", cpu_model()}, {"cores", available_cores()}}},
          {"workers", workers},   {"threads", threads},
          {"options", options}};
}

Recorder::Recorder(RunFolder folder, const ControlOptions& control, const Json& config,
                   std::vector<EpochRecord> before)
    : control_(control), folder_(std::move(folder)) {
  folder_.write_config(config);
  folder_.keep_epochs(0);
  for (const EpochRecord& record : before) add(record);
}

Recorder::Recorder(RunFolder folder, const ControlOptions& control, const Json& config, int epochs)
    : control_(control), folder_(std::move(folder)) {
  folder_.write_config(config);
  folder_.keep_epochs(static_cast<std::size_t>(epochs));
  for (const Json& line : read_run(folder_.path()).epochs) from_json(line, records_.emplace_back());
}

void Recorder::write_events() {
  events_.emplace(folder_.path() / kEventsFile);
  for (const EpochRecord& record : records_) events_->add(record);
}

void Recorder::add(const EpochRecord& record) {
  folder_.append_epoch(to_json(record));
  if (events_) events_->add(record);
  records_.push_back(record);
}

Json Recorder::finish(const std::string& status, const std::string& reason) {
  Json summary = {{"status", status}};
  if (!reason.empty()) summary["reason"] = reason;
  summary.update(summarise(records_, control_));
  summary["ended"] = utc_now();
  folder_.write_summary(summary);
  return summary;
}

}  // namespace accordion
