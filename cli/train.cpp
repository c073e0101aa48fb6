// accordion train: one run. Starts --workers ranks on this machine, or is itself one rank of a group that
// torchrun, mpirun or srun started.
#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "accordion/base/json.h"
#include "accordion/comm/backends.h"
#include "accordion/data/dataset.h"
#include "accordion/launch/free_port.h"
#include "accordion/launch/place.h"
#include "accordion/launch/settings.h"
#include "accordion/launch/supervise.h"
#include "accordion/log/progress.h"
#include "accordion/run/replay.h"
#include "accordion/train/run.h"
#include "cli/fields.h"
#include "cli/run_options.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

struct TrainArguments {
  TrainOptions train;
  LaunchOptions launch;
  std::string recipe;
  bool print_config = false, json = false, explain_step = false;
};

// Tells a worker that its standard error ends at a terminal, and how wide that is.
constexpr const char* kTerminalWidth = "ACCORDION_TERMINAL_WIDTH";

volatile std::sig_atomic_t stop_signal = 0;

void note_signal(int signal) {
  stop_signal = signal;
}

// The first signal asks for an orderly end; a second one of the same kind ends the process at once.
void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESETHAND;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* locale = std::getenv(name); locale && *locale) {
      const std::string_view text = locale;
      return text.ends_with("UTF-8") || text.ends_with("utf8");
    }
  return false;
}

ProgressOptions progress_options(const TrainArguments& arguments) {
  ProgressOptions progress;
  progress.epochs = arguments.train.epochs;
  progress.utf8 = locale_is_utf8();
  const char* told = std::getenv(kTerminalWidth);
  const auto width = told ? std::optional(std::atoi(told)) : terminal_width(STDERR_FILENO);
  if (width) progress.width = [width] { return *width; };
  progress.style = arguments.launch.quiet ? ProgressStyle::kQuiet
                   : width                ? ProgressStyle::kBar
                                          : ProgressStyle::kLines;
  return progress;
}

void print_outcome(const TrainArguments& arguments, const RunOutcome& outcome) {
  if (arguments.json) {
    Json result = outcome.summary;
    result["folder"] = outcome.folder.string();
    if (!outcome.explained_step.empty()) result["explained_step"] = outcome.explained_step;
    std::cout << result.dump(2) << std::endl;
    return;
  }
  if (!outcome.explained_step.empty()) std::cout << outcome.explained_step << "\n";
  if (arguments.launch.quiet) return;
  const Json& summary = outcome.summary;
  if (outcome.interrupted) std::cout << "Interrupted after " << summary["epochs"] << " whole epochs.\n";
  if (outcome.last)
    std::printf("%s on %s: test %s after %d epochs, %s of training, %s sent per worker.\n",
                arguments.train.model.c_str(), arguments.train.data.c_str(),
                result_text(*outcome.last, 2).c_str(), summary["epochs"].get<int>(),
                duration_text(summary["seconds"].get<double>()).c_str(),
                bytes_text(summary["wire_bytes"].get<std::uint64_t>()).c_str());
  if (const auto detectors = summary.find("detectors"); detectors != summary.end())
    std::printf("The Hessian's largest eigenvalue and the gradient norm agree at %d of %d detections.\n",
                (*detectors)["agreements"].get<int>(), (*detectors)["comparisons"].get<int>());
  std::fflush(stdout);
  std::cout << "Run folder: " << outcome.folder.string()
            << " (config.json, epochs.jsonl, summary.json, checkpoints/)" << std::endl;
}

// This process is a rank.
int run_rank(const TrainArguments& arguments, const Place& place, char** argv) {
  const LaunchOptions& launch = arguments.launch;
  const int threads = launch.threads > 0 ? launch.threads : threads_of_rank(place, ::getenv);
  ensure_settings(threads, argv);
  if (place.rank == 0 && !launch.quiet)
    for (const std::string& warning : train_warnings(resolve(arguments.train)))
      std::cerr << "accordion: warning: " << warning << "\n";

  RunSetup setup;
  setup.meeting = rendezvous_at(place);
  setup.meeting.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * launch.timeout));
  setup.meeting.interface = launch.interface;
  setup.connect = [&](const Rendezvous& meeting) { return connect(launch.backend, meeting); };
  setup.threads = threads;
  setup.data_dir = launch.data_dir;
  setup.data_root = data_root();
  setup.out = launch.out;
  setup.if_taken = launch.overwrite ? IfTaken::kReplace : IfTaken::kRefuse;
  setup.progress = progress_options(arguments);
  setup.progress_out = &std::cerr;
  setup.on_start = catch_stop_signals;
  setup.explain_step = arguments.explain_step;
  setup.stop_requested = [] { return stop_signal != 0; };
  const RunOutcome outcome = run_training(arguments.train, setup);
  if (place.rank == 0) print_outcome(arguments, outcome);
  // Asked to stop, and stopped well: a launcher must not take that for a failure of this rank.
  return 0;
}

// This process starts the ranks.
int launch_ranks(const TrainArguments& arguments, int argc, char** argv) {
  const LaunchOptions& launch = arguments.launch;
  // Names the missing data set once, before ranks start.
  find_dataset(arguments.train.data, launch.data_dir, data_root());
  const int threads =
      launch.threads > 0 ? launch.threads : threads_per_rank(available_cores(), launch.workers);
  const int port = launch.port > 0 ? launch.port : free_port();
  std::vector<WorkerSpec> workers;
  for (int rank = 0; rank < launch.workers; ++rank) {
    WorkerSpec worker;
    worker.argv.push_back(std::filesystem::read_symlink("/proc/self/exe"));
    worker.argv.insert(worker.argv.end(), argv + 1, argv + argc);
    worker.environment = worker_environment(threads);
    worker.environment.merge(place_environment({.rank = rank,
                                                .world = launch.workers,
                                                .local_rank = rank,
                                                .local_world = launch.workers,
                                                .port = port}));
    if (const auto width = terminal_width(STDERR_FILENO))
      worker.environment[kTerminalWidth] = std::to_string(*width);
    workers.push_back(std::move(worker));
  }
  // A rank ends after its step; nobody but the user knows how long that may take, and a second Ctrl-C is at
  // hand.
  const Ending ending = supervise(workers, {.stop_seconds = std::max(60.0, launch.timeout)});
  if (!ending.message.empty()) std::cerr << "accordion: " << ending.message << "\n";
  return ending.interrupted ? 128 + ending.interrupted : ending.status;
}

}  // namespace

Run add_train(CLI::App& verb, int argc, char** argv) {
  auto arguments = std::make_shared<TrainArguments>();
  add_fields(verb, "train", arguments->train);
  add_fields(verb, "train", arguments->launch);
  verb.add_option("--recipe", arguments->recipe,
                  "TOML file with any of these options; the command line overrides it.");
  verb.add_flag("--print-config", arguments->print_config, "Print what would run, as a recipe, and stop.");
  verb.add_flag("--explain-step", arguments->explain_step,
                "At the end, show one step as a chart: backward, encoding, wire and decoding, measured "
                "beside predicted.");
  verb.add_flag("--json", arguments->json, "Print the summary as one JSON object.");
  if (argc > 1 && std::string_view(argv[1]) == "train")
    if (const std::string recipe = recipe_argument(argc, argv); !recipe.empty())
      apply_recipe(recipe, arguments->train, arguments->launch);

  return [arguments, argc, argv] {
    const auto place = place_from_environment(::getenv);
    check_backend(arguments->launch.backend);
    check_run_options(arguments->train, place ? place->world : arguments->launch.workers);
    if (arguments->print_config) {
      std::cout << recipe_text(arguments->train) << recipe_text(arguments->launch);
      return 0;
    }
    if (place) {
      if (arguments->launch.workers != 1 && arguments->launch.workers != place->world)
        throw UsageError("train: workers=" + std::to_string(arguments->launch.workers) + ", but " +
                         place->source + " started " + std::to_string(place->world) +
                         " ranks; leave the option out");
      return run_rank(*arguments, *place, argv);
    }
    if (arguments->launch.workers > 1 && arguments->launch.backend == "mpi")
      throw UsageError("train: backend=mpi with workers=" + std::to_string(arguments->launch.workers) +
                       "; start the ranks with mpirun -n " + std::to_string(arguments->launch.workers) +
                       " instead");
    if (arguments->launch.workers > 1) return launch_ranks(*arguments, argc, argv);
    const int port = arguments->launch.port > 0 ? arguments->launch.port : free_port();
    const int status = run_rank(*arguments, {.port = port}, argv);
    return stop_signal ? 128 + static_cast<int>(stop_signal) : status;
  };
}

}  // namespace accordion::cli
