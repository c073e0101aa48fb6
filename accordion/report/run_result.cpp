#include "accordion/report/run_result.h"

#include <cmath>

#include "accordion/base/json.h"
#include "accordion/log/epoch_record.h"
#include "accordion/log/read_run.h"
#include "accordion/log/run_folder.h"
#include "accordion/log/run_totals.h"

namespace accordion {
namespace {

RunResult result_of(const Run& run, const std::string& folder) {
  std::vector<EpochRecord> epochs;
  try {
    for (const Json& line : run.epochs) from_json(line, epochs.emplace_back());
  } catch (const Error& error) {
    throw Error(folder + ": " + error.what());
  }
  if (epochs.empty() || (!epochs.back().test_accuracy && !epochs.back().test_perplexity))
    throw Error(folder + ": no epoch with a test accuracy or perplexity");
  return result_of(epochs);
}

}  // namespace

RunResult result_of(const std::vector<EpochRecord>& epochs) {
  const EpochRecord& last = epochs.back();
  const RunTotals all = total(epochs);
  return {.metric = last.test_accuracy ? Metric::kAccuracy : Metric::kPerplexity,
          .value = last.test_accuracy ? *last.test_accuracy : *last.test_perplexity,
          .seconds = all.seconds,
          .train_loss = std::isfinite(last.train_loss) ? std::optional(last.train_loss) : std::nullopt,
          .payload_bytes = all.payload_bytes,
          .wire_bytes = all.wire_bytes,
          .paper_floats = all.paper_floats};
}

std::string difference(const Json& config, const RunPlan& plan) {
  const auto differs = [](const Json& record, const char* key, const Json& planned) -> std::string {
    const auto found = record.find(key);
    if (found == record.end()) return std::string(key) + " was not recorded";
    return *found == planned ? "" : std::string(key) + " was " + found->dump() + " and is " + planned.dump();
  };
  if (const std::string text = differs(config, "workers", plan.workers); !text.empty()) return text;
  if (plan.threads)
    if (const std::string text = differs(config, "threads", *plan.threads); !text.empty()) return text;
  const Json recorded = config.value("options", Json::object());
  for (const auto& [key, planned] : plan.options.items())
    if (const std::string text = differs(recorded, key.c_str(), planned); !text.empty()) return text;
  return "";
}

RunResult read_result(const std::filesystem::path& folder) {
  return result_of(read_run(folder), folder.string());
}

std::string why_not_finished(const std::filesystem::path& folder, const RunPlan& plan) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder / kConfigFile, ignored)) return "there is none";
  try {
    const Run run = read_run(folder);
    if (const std::string text = difference(run.config, plan); !text.empty()) return text;
    if (!run.summary) return "it was cut short";
    const std::string status = run.summary->value("status", "");
    if (status != "finished") return "it " + (status == "failed" ? status : "was " + status);
    result_of(run, folder.string());
    return "";
  } catch (const Error& error) {  // Written by hand, or half a file: nothing that cannot be run again.
    return error.what();
  } catch (const Json::exception& error) {
    return folder.string() + ": " + error.what();
  }
}

}  // namespace accordion
