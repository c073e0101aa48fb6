// accordion compare: several settings times several seeds, one run of `train` after the other, and one table.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "accordion/base/json.h"
#include "accordion/data/dataset.h"
#include "accordion/launch/place.h"
#include "accordion/launch/supervise.h"
#include "accordion/log/folder_lock.h"
#include "accordion/log/progress_text.h"
#include "accordion/log/write_file.h"
#include "accordion/report/comparison.h"
#include "accordion/report/comparison_folder.h"
#include "accordion/report/comparison_text.h"
#include "accordion/run/replay.h"
#include "cli/comparison_recipe.h"
#include "cli/fields.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

namespace fs = std::filesystem;

struct CompareArguments {
  SettingOptions options;  // Only to have them on the command line: which were given is what counts.
  std::string recipe, out, seeds, format = "markdown";
  bool json = false, quiet = false, dry_run = false;
};

struct PlannedRun {
  const Setting* setting;
  int seed;
  std::string label;  // "[3/9] strong, seed 2"
  fs::path folder;
  RunPlan plan;
  std::string why;  // It has to run; empty when its folder holds it already.
};

// Seed by seed, so that a comparison that is cut short has something of every setting, and a machine that
// grows slower does so for all of them.
std::vector<PlannedRun> plan_runs(const ComparisonRecipe& recipe, const fs::path& out) {
  std::vector<PlannedRun> runs;
  const std::size_t total = recipe.seeds.size() * recipe.settings.size();
  for (const int seed : recipe.seeds)
    for (const Setting& setting : recipe.settings) {
      TrainOptions train = resolve(setting.options.train);  // As the record will have it.
      train.seed = seed;
      const LaunchOptions& launch = setting.options.launch;
      PlannedRun run{.setting = &setting,
                     .seed = seed,
                     .label = "[" + std::to_string(runs.size() + 1) + "/" + std::to_string(total) + "] " +
                              setting.name + ", seed " + std::to_string(seed),
                     .folder = out / setting.folder / seed_folder(seed),
                     .plan = {.options = to_json(train), .workers = launch.workers},
                     .why = ""};
      if (launch.threads > 0) run.plan.threads = launch.threads;
      run.why = why_not_finished(run.folder, run.plan);
      runs.push_back(std::move(run));
    }
  return runs;
}

std::string result_text(const RunResult& result) {
  return value_text(result.metric, result.value) + " in " + seconds_text(result.seconds) + ", " +
         bytes_text(result.wire_bytes) + " sent";
}

// One ordinary run of `train`, from a recipe that stays beside its folder.
Ending train(const PlannedRun& run, const std::string& program) {
  const fs::path recipe = run.folder.string() + ".toml";
  std::error_code error;
  fs::create_directories(run.folder.parent_path(), error);
  if (error)
    throw Error(run.folder.parent_path().string() + ": cannot create the folder: " + error.message());
  write_whole(recipe, recipe_text(run.setting->options) + "seed = " + std::to_string(run.seed) + "\n");
  WorkerSpec spec;
  // A run that was cut short goes on; what is there of another one gives way.
  spec.argv = {program,    "train",       "--recipe", recipe.string(), "--out", run.folder.string(),
               "--resume", "--overwrite", "--quiet"};
  // Longer than `train` gives its ranks.
  return supervise({spec}, {.stop_seconds = std::max(60.0, run.setting->options.launch.timeout) + 10});
}

void list(const std::vector<PlannedRun>& runs) {
  for (const PlannedRun& run : runs)
    std::cout << run.label << ": "
              << (run.why.empty() ? "finished, " + result_text(read_result(run.folder))
                                  : "to run, because " + run.why)
              << "\n";
}

class Compare {
 public:
  Compare(const CompareArguments& arguments, const std::vector<RecipeEntry>& overrides,
          const ComparisonRecipe& recipe, fs::path out)
      : arguments_(arguments),
        overrides_(overrides),
        recipe_(recipe),
        out_(std::move(out)),
        runs_(plan_runs(recipe, out_)) {}

  int run() {
    if (arguments_.dry_run) return list(runs_), 0;
    std::error_code ignored;  // Whoever writes into it says why it is not there.
    fs::create_directories(out_, ignored);
    const UniqueFd lock = lock_folder(out_);
    announce();
    note_settings();
    // Now, because a program that is built again meanwhile leaves no name behind.
    const std::string program = fs::read_symlink("/proc/self/exe");
    for (const PlannedRun& run : runs_)
      if (const int status = finish(run, program); status != 0) return status;
    print();
    if (failed_.empty()) return 0;
    std::cerr << "accordion: compare: " << failed_.size() << " of " << runs_.size()
              << " runs failed: " << join(failed_) << "; the same command tries them again\n";
    return 1;
  }

 private:
  void announce() const {
    if (arguments_.quiet) return;
    const auto kept =
        std::count_if(runs_.begin(), runs_.end(), [](const auto& run) { return run.why.empty(); });
    std::cerr << runs_.size() << " runs into " << out_.string() << ": " << recipe_.settings.size()
              << " settings, " << recipe_.seeds.size() << (recipe_.seeds.size() == 1 ? " seed" : " seeds");
    if (kept > 0) std::cerr << "; " << kept << " are there already";
    std::cerr << "\n";
    for (const Setting& setting : recipe_.settings)
      for (const std::string& warning : train_warnings(resolve(setting.options.train)))
        std::cerr << "accordion: warning: " << setting.name << ": " << warning << "\n";
  }

  // For who reads the folder later: names and their order, and what it takes to make it again.
  void note_settings() const {
    ComparisonFolder folder{.recipe = arguments_.recipe, .seeds = {}, .settings = {}};
    folder.seeds.assign(recipe_.seeds.begin(), recipe_.seeds.end());
    for (const Setting& setting : recipe_.settings) folder.settings.push_back({setting.name, setting.folder});
    for (const RecipeEntry& entry : overrides_) folder.options.emplace_back(entry.name, entry.text);
    write_comparison_folder(out_, folder);
  }

  // A failed run is noted and the others go on; the status is not 0 when they cannot.
  int finish(const PlannedRun& run, const std::string& program) {
    const auto tell = [&](const std::string& text) {
      if (!arguments_.quiet) std::cerr << text << std::flush;
    };
    if (run.why.empty()) {
      tell(run.label + ": kept, " + result_text(read_result(run.folder)) + "\n");
      return 0;
    }
    const bool again = fs::exists(run.folder);
    tell(run.label + (again ? " (again, because " + run.why + ")" : "") + ": ");
    const Ending ending = train(run, program);
    if (ending.interrupted) {
      tell("interrupted\n");
      std::cerr << "accordion: compare: stopped; what is finished is kept, and the same command goes on with "
                   "the rest\n";
      return 128 + ending.interrupted;
    }
    if (ending.status != 0) {
      // Its last words have passed already; how it ended has not.
      std::string how = ending.message.substr(0, ending.message.find("; its last words"));
      if (how.starts_with("rank 0 ")) how.erase(0, 7);
      tell(run.label + ": " + how + "\n");
      failed_.push_back(run.setting->name + " (seed " + std::to_string(run.seed) + ")");
      return 0;
    }
    tell(result_text(read_result(run.folder)) + "\n");
    return 0;
  }

  Comparison result() const {
    std::vector<SettingResults> settings;
    for (const Setting& setting : recipe_.settings) {
      settings.push_back({.name = setting.name, .seeds = {}});
      for (const PlannedRun& run : runs_) {
        if (run.setting != &setting) continue;
        SeedResult seed{.seed = run.seed, .folder = run.folder.string(), .result = {}};
        if (why_not_finished(run.folder, run.plan).empty()) seed.result = read_result(run.folder);
        settings.back().seeds.push_back(std::move(seed));
      }
    }
    return compare(settings);
  }

  void print() const {
    const Comparison comparison = result();
    if (arguments_.format == "json") {
      std::cout << comparison_json(comparison).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    } else if (arguments_.format == "csv") {
      std::cout << comparison_csv(comparison);
    } else {
      if (!arguments_.quiet) std::cerr << "\n";
      std::cout << markdown_table(comparison);
      if (const std::string text = reading(comparison); !text.empty()) std::cout << "\n" << text << "\n";
    }
    std::cout << std::flush;
  }

  const CompareArguments& arguments_;
  const std::vector<RecipeEntry>& overrides_;
  const ComparisonRecipe& recipe_;
  const fs::path out_;
  const std::vector<PlannedRun> runs_;
  std::vector<std::string> failed_;
};

int run_comparison(CompareArguments arguments, const std::vector<RecipeEntry>& overrides) {
  if (arguments.recipe.empty())
    throw UsageError("compare: no --recipe, expected a TOML file with a [name] section for each setting");
  if (arguments.json && arguments.format == "csv")
    throw UsageError("compare: format=csv with --json, expected one of them");
  check_name("compare", "format", arguments.format, one_of({"markdown", "csv", "json"}));
  if (arguments.json) arguments.format = "json";
  // Everything that can be told without starting a run.
  ComparisonRecipe recipe = read_comparison(arguments.recipe, overrides, [](const SettingOptions& options) {
    check_run_options(options.train, options.launch.workers);
  });
  for (const Setting& setting : recipe.settings)
    find_dataset(setting.options.train.data, setting.options.launch.data_dir, data_root());
  if (!arguments.seeds.empty()) recipe.seeds = parse_seeds("compare", arguments.seeds);
  if (const auto place = place_from_environment(::getenv))
    throw UsageError("compare: started by " + place->source +
                     ", but it starts the ranks of its runs itself, one run after the other; run it alone");
  const fs::path out =
      arguments.out.empty() ? "runs/compare-" + fs::path(arguments.recipe).stem().string() : arguments.out;
  return Compare(arguments, overrides, recipe, out).run();
}

}  // namespace

Run add_compare(CLI::App& verb) {
  auto arguments = std::make_shared<CompareArguments>();
  verb.add_option("--recipe", arguments->recipe,
                  "TOML file: shared options, then a [name] section for each setting; the first is what the "
                  "others are compared to.");
  verb.add_option("--out", arguments->out,
                  "Folder of the runs; runs/compare-RECIPE by default. Finished runs there are kept.");
  verb.add_option("--seeds", arguments->seeds,
                  "Seeds of the runs of each setting, over the recipe's: 1,2,3.");
  verb.add_option("--format", arguments->format, "Of the table. (markdown, csv, json)");
  verb.add_flag("--json", arguments->json, "The same as --format json.");
  verb.add_flag("--quiet", arguments->quiet, "Show no progress.");
  verb.add_flag("--dry-run", arguments->dry_run, "List the runs, and which have to run, and stop.");
  const std::size_t own = verb.get_options().size();
  add_fields(verb, "compare", arguments->options);
  const std::vector<CLI::Option*> options = verb.get_options(nullptr);
  std::for_each(options.begin() + static_cast<std::ptrdiff_t>(own), options.end(),
                [](CLI::Option* option) { option->group("Options of every run, over the recipe's"); });
  return [arguments, &verb] {
    return run_comparison(*arguments, given_fields(verb, "compare", arguments->options));
  };
}

}  // namespace accordion::cli
