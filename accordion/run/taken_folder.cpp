#include "accordion/run/taken_folder.h"

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/log/read_run.h"
#include "accordion/report/run_result.h"
#include "accordion/run/replay.h"

namespace accordion {

bool holds_run(const std::filesystem::path& folder) {
  std::error_code ignored;
  return !folder.empty() && std::filesystem::exists(folder / kConfigFile, ignored);
}

IfTaken what_becomes_of(const std::filesystem::path& folder, const TrainOptions& given, int workers,
                        Resume resume, IfTaken wish) {
  if (resume == Resume::kNo || !holds_run(folder)) return wish;
  if (resume == Resume::kRegrouped) return IfTaken::kContinue;
  const RunPlan plan{.options = to_json(resolve(given)), .workers = workers};
  const std::string other = difference(read_run(folder).config, plan);
  if (other.empty()) return IfTaken::kContinue;
  if (wish == IfTaken::kReplace) return wish;
  throw UsageError("the folder " + folder.string() + " holds another run to go on with: " + other +
                   "; give another with --out, or replace it with --overwrite");
}

}  // namespace accordion
