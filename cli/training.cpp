#include "cli/training.h"

#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <thread>

#include "accordion/base/json.h"
#include "accordion/comm/backends.h"
#include "accordion/data/dataset.h"
#include "accordion/launch/free_port.h"
#include "accordion/launch/place.h"
#include "accordion/launch/settings.h"
#include "accordion/launch/supervise.h"
#include "accordion/log/folder_lock.h"
#include "accordion/log/progress.h"
#include "accordion/run/replay.h"
#include "accordion/train/run.h"

namespace accordion::cli {
namespace {

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

IfTaken if_taken(const LaunchOptions& launch) {
  return launch.overwrite ? IfTaken::kReplace : IfTaken::kRefuse;
}

Resume resume_of(const TrainArguments& arguments) {
  return arguments.regrouped ? Resume::kRegrouped : arguments.launch.resume ? Resume::kSameRun : Resume::kNo;
}

// This process is a rank.
int run_rank(const TrainArguments& arguments, const Place& place, char** argv) {
  const LaunchOptions& launch = arguments.launch;
  const int threads = launch.threads > 0 ? launch.threads : threads_of_rank(place, ::getenv);
  ensure_settings(threads, argv);
  RunSetup setup;
  setup.meeting = rendezvous_at(place);
  setup.meeting.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * launch.timeout));
  setup.meeting.interface = launch.interface;
  setup.connect = [&](const Rendezvous& meeting) { return connect(launch.backend, meeting); };
  setup.threads = threads;
  setup.data_dir = launch.data_dir;
  setup.data_root = data_root();
  setup.out = launch.out;
  setup.if_taken = if_taken(launch);
  setup.resume = resume_of(arguments);
  setup.checkpoint_every = parse_checkpoint_every("train", launch.checkpoint_every);
  setup.keep = launch.keep;
  setup.check_every = launch.check_every;
  setup.launch = accordion::to_json(launch);
  setup.note = [&](const std::string& text) {
    if (!launch.quiet || text.starts_with("warning")) std::cerr << "accordion: " << text << std::endl;
  };
  setup.progress = progress_options(arguments);
  setup.progress_out = &std::cerr;
  setup.on_start = [&] {
    if (place.rank == 0 && !launch.quiet)
      for (const std::string& warning : train_warnings(resolve(arguments.train)))
        std::cerr << "accordion: warning: " << warning << "\n";
    catch_stop_signals();
  };
  setup.explain_step = arguments.explain_step;
  setup.tensorboard = arguments.tensorboard;
  setup.trace = arguments.trace;
  setup.stop_requested = [] { return stop_signal != 0; };
  const RunOutcome outcome = run_training(arguments.train, setup);
  if (place.rank == 0) print_outcome(arguments, outcome);
  // Asked to stop, and stopped well: a launcher must not take that for a failure of this rank.
  return 0;
}

// Of a process that one of ours started, and that is started again when it fails: how often that was.
constexpr const char* kRestart = "ACCORDION_RESTART";

// Starts ranks, all of the group or the one at a place, and starts them again as often as the options allow: from the last
// checkpoint, in the same folder.
int supervise_ranks(const LaunchOptions& launch, int first_rank, std::vector<WorkerSpec> ranks) {
  for (int restart = 0;; ++restart) {
    for (WorkerSpec& rank : ranks) rank.environment[kRestart] = std::to_string(restart);
    // A rank ends after its step; nobody but the user knows how long that may take, and a second Ctrl-C is at
    // hand.
    const Ending ending =
        supervise(ranks, {.stop_seconds = std::max(60.0, launch.timeout), .first_rank = first_rank});
    if (!ending.message.empty()) std::cerr << "accordion: " << ending.message << "\n";
    if (ending.interrupted) return 128 + ending.interrupted;
    if (ending.status != 1 || restart == launch.max_restarts) return ending.status;
    std::cerr << "accordion: starting again from the last checkpoint (" << restart + 1 << " of "
              << launch.max_restarts << ")" << std::endl;
    // Ranks that others started notice a failure at different times.
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

// The same command, as another process.
WorkerSpec same_command(const LaunchOptions& launch, int argc, char** argv) {
  WorkerSpec worker;
  worker.argv.push_back(std::filesystem::read_symlink("/proc/self/exe"));
  worker.argv.insert(worker.argv.end(), argv + 1, argv + argc);
  // One that is started again must find the folder that it had.
  if (launch.max_restarts > 0) worker.argv.insert(worker.argv.end(), {"--out", launch.out});
  return worker;
}

// This process starts the ranks.
int launch_ranks(const LaunchOptions& launch, int argc, char** argv) {
  const int threads =
      launch.threads > 0 ? launch.threads : threads_per_rank(available_cores(), launch.workers);
  const int port = launch.port > 0 ? launch.port : free_port();
  std::vector<WorkerSpec> workers;
  for (int rank = 0; rank < launch.workers; ++rank) {
    WorkerSpec worker = same_command(launch, argc, argv);
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
  return supervise_ranks(launch, 0, std::move(workers));
}

}  // namespace

void add_output_flags(CLI::App& verb, TrainArguments& arguments) {
  verb.add_flag("--tensorboard", arguments.tensorboard,
                "Write TensorBoard's event file into the run folder, too.");
  verb.add_flag(
      "--trace", arguments.trace,
      "Write the buckets of one epoch, of all ranks, into the run folder as a trace that Perfetto opens.");
  verb.add_flag("--json", arguments.json, "Print the summary as one JSON object.");
}

int run_or_launch(TrainArguments arguments, int argc, char** argv) {
  LaunchOptions& launch = arguments.launch;
  const auto place = place_from_environment(::getenv);
  const char* restart = std::getenv(kRestart);
  check_backend(launch.backend);
  if (launch.backend == "mpi" && !launch.interface.empty())
    throw UsageError(
        "train: interface=" + launch.interface +
        " with backend=mpi, expected no interface: MPI takes the networks that mpirun is told of "
        "(Open MPI: --mca btl_tcp_if_include " +
        launch.interface + ")");
  parse_checkpoint_every("train", launch.checkpoint_every);
  if (place && launch.workers != 1 && launch.workers != place->world)
    throw UsageError("train: workers=" + std::to_string(launch.workers) + ", but " + place->source +
                     " started " + std::to_string(place->world) + " ranks; leave the option out");
  if (launch.resume && launch.out.empty())
    throw UsageError("train: resume without out, expected the folder of the run to go on with");
  check_run_options(arguments.train, place ? place->world : launch.workers);
  // Names once, before ranks start, the data set that is missing and the run that is another.
  if (!place) {
    find_dataset(arguments.train.data, launch.data_dir, data_root());
    what_becomes_of(launch.out, arguments.train, launch.workers, resume_of(arguments), if_taken(launch));
    if (std::filesystem::is_directory(launch.out)) lock_folder(launch.out);  // And leaves it to rank 0.
  }
  const bool supervised = restart != nullptr;
  if (place && (supervised || launch.max_restarts == 0)) {
    if (place->restart > 0 || (supervised && std::string_view(restart) != "0")) launch.resume = true;
    return run_rank(arguments, *place, argv);
  }
  if (launch.max_restarts > 0 && launch.out.empty()) {
    if (place) throw UsageError("train: max-restarts without out, expected a folder that all ranks see");
    launch.out = make_default_folder("runs", arguments.train.data,
                                     arguments.train.model.substr(0, arguments.train.model.find(':')),
                                     std::time(nullptr));
  }
  if (place) return supervise_ranks(launch, place->rank, {same_command(launch, argc, argv)});
  if (launch.workers > 1 && launch.backend == "mpi")
    throw UsageError("train: backend=mpi with workers=" + std::to_string(launch.workers) +
                     "; start the ranks with mpirun -n " + std::to_string(launch.workers) + " instead");
  if (launch.workers > 1 || launch.max_restarts > 0) return launch_ranks(launch, argc, argv);
  const int port = launch.port > 0 ? launch.port : free_port();
  const int status = run_rank(arguments, {.port = port}, argv);
  return stop_signal ? 128 + static_cast<int>(stop_signal) : status;
}

}  // namespace accordion::cli
