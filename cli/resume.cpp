// accordion resume RUN: goes on with a run from its last checkpoint, with its own options, and as many workers or others.
#include <filesystem>
#include <iostream>

#include "accordion/base/json.h"
#include "accordion/launch/place.h"
#include "accordion/log/read_run.h"
#include "cli/fields.h"
#include "cli/training.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

// The options of a run as its config.json has them.
template <class Options>
void read_options(const Json& config, const char* key, const std::string& folder, Options& options) {
  const auto found = config.find(key);
  if (found == config.end()) return;
  try {
    from_json(*found, options);
    check("resume", options);
  } catch (const std::exception& error) {
    throw UsageError(folder + ": config.json: " + key + ": " + error.what());
  }
}

// The same samples in a step, shared among other workers.
void regroup(TrainOptions& train, int before, int now, const std::string& folder) {
  const std::int64_t together = static_cast<std::int64_t>(train.batch) * before;
  if (together % now != 0)
    throw UsageError("resume: workers=" + std::to_string(now) + " for " + folder + ", whose " +
                     std::to_string(before) + " workers take " + std::to_string(together) +
                     " samples at a time; expected a number that divides that");
  train.batch = static_cast<int>(together / now);
}

}  // namespace

Run add_resume(CLI::App& verb, int argc, char** argv) {
  struct Arguments : TrainArguments {
    std::string folder;
  };
  auto arguments = std::make_shared<Arguments>();
  verb.add_option("RUN", arguments->folder, "Folder of the run.")->required();
  add_output_flags(verb, *arguments);
  add_fields(verb, "resume", arguments->launch);
  return [arguments, argc, argv, &verb] {
    const std::string& folder = arguments->folder;
    const accordion::Run run = read_run(folder);
    if (run.summary && run.summary->value("status", "") == "finished") {
      std::cerr << "accordion: resume: " << folder << " has finished; there is nothing to go on with\n";
      return 0;
    }
    const LaunchOptions given = arguments->launch;
    read_options(run.config, "options", folder, arguments->train);
    const int before = run.config.value("workers", 1);
    // As it was started, but for what is said now.
    arguments->launch = {};
    read_options(run.config, "launch", folder, arguments->launch);
    arguments->launch.workers = before;
    arguments->launch.quiet = false;
    arguments->launch.port = 0;
    for (const RecipeEntry& entry : given_fields(verb, "resume", given)) set_field(entry, arguments->launch);
    arguments->launch.out = folder;
    arguments->launch.overwrite = false;
    arguments->launch.resume = true;
    arguments->regrouped = true;
    const auto place = place_from_environment(::getenv);
    const int now = place ? place->world : arguments->launch.workers;
    if (place) arguments->launch.workers = 1;
    if (now != before) regroup(arguments->train, before, now, folder);
    return run_or_launch(*arguments, argc, argv);
  };
}

}  // namespace accordion::cli
