// accordion bench: verifies, then times.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>

#include "accordion/base/json.h"
#include "accordion/base/options.h"
#include "accordion/launch/place.h"
#include "accordion/launch/settings.h"
#include "accordion/models/zoo.h"
#include "accordion/run/shapes.h"
#include "bench/codec_peer.h"
#include "bench/codec_table.h"
#include "bench/control.h"
#include "bench/crew.h"
#include "bench/ddp.h"
#include "bench/ddp_worker.h"
#include "bench/models.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

namespace fs = std::filesystem;

struct DdpBenchOptions {
  std::vector<std::string> models = {"cnn", "resnet18"};
  std::vector<int> workers = {2, 4};
  int batch = 8, steps = 20;
  std::string python = "/usr/bin/python3";
  bool json = false;
};

struct CodecBenchOptions {
  std::string model = "resnet50";
  std::vector<std::string> codecs;
  int threads = 1, repetitions = 15;
  std::string python = "/usr/bin/python3";
  bool peers = true, json = false;
};

struct ModelsBenchOptions : bench::ModelBenchOptions {
  std::vector<std::string> models;
  std::string data;
  int batch = 0;
  bool json = false;
};

// Scripts of bench/ lie beside the build folder, or where `cmake --install` puts them.
std::string find_script(const std::string& name) {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const fs::path places[] = {program.parent_path().parent_path() / "bench" / name,
                             program.parent_path().parent_path() / "share" / "accordion" / "bench" / name};
  for (const fs::path& place : places)
    if (fs::exists(place)) return place;
  throw Error("bench: " + name + " is neither at " + places[0].string() + " nor at " + places[1].string());
}

int bench_ddp(const DdpBenchOptions& options) {
  const bench::DdpPaths paths{fs::read_symlink("/proc/self/exe"), options.python, find_script("ddp_peer.py")};
  for (const std::string& model : options.models)
    check_name("bench ddp", "model", model, one_of({"cnn", "resnet18", "resnet20"}));  // What the peer has.
  for (const int workers : options.workers)
    check_number("bench ddp", "workers", workers, at_least(1).up_to(64));
  if (!bench::runs({options.python, "-c", "import torch.distributed"}))
    throw UsageError("bench ddp: " + options.python +
                     " cannot import torch; install python3-torch, or name another "
                     "interpreter with --python");
  Json rows = Json::array();
  if (!options.json)
    std::printf("%-10s %7s %6s %11s %11s %7s %16s %8s\n", "model", "workers", "batch", "ours ms",
                "PyTorch ms", "ratio", "95 % interval", "hidden");
  for (const std::string& model : options.models)
    for (int workers : options.workers) {
      if (::isatty(STDERR_FILENO)) std::fprintf(stderr, "%s with %d workers ...\r", model.c_str(), workers);
      const auto timing = bench::time_ddp({model, workers, options.batch, options.steps}, paths);
      if (options.json)
        rows.push_back({{"model", model},
                        {"workers", workers},
                        {"batch", options.batch},
                        {"steps", options.steps},
                        {"step_ms", timing.ours_ms},
                        {"torch_ms", timing.torch_ms},
                        {"ratio", timing.ratio},
                        {"ratio_low", timing.ratio_low},
                        {"ratio_high", timing.ratio_high},
                        {"hidden_share", timing.hidden_share}});
      else
        std::printf("%-10s %7d %6d %11.2f %11.2f %7.3f   %.3f to %.3f %6.0f %%\n", model.c_str(), workers,
                    options.batch, timing.ours_ms, timing.torch_ms, timing.ratio, timing.ratio_low,
                    timing.ratio_high, 100 * timing.hidden_share);
      std::fflush(stdout);
    }
  if (options.json)
    std::cout << rows.dump(2) << "\n";
  else
    std::printf(
        "Gradients verified against PyTorch's before timing. Ratio below 1: ours is faster. Hidden: share "
        "of\n"
        "communication that ran while backward went on.\n");
  return 0;
}

int bench_ddp_worker(bench::WorkerOptions options) {
  const auto place = place_from_environment(::getenv);
  if (!place) throw UsageError("bench ddp-worker is started by bench ddp");
  options.threads = threads_of_rank(*place, ::getenv);
  bench::run_ddp_worker(
      {.rank = place->rank, .size = place->world, .address = place->address, .port = place->port}, options);
  return 0;
}

// Null, after a word to the user, where there is no torch to compare with.
std::optional<bench::CodecPeer> find_codec_peer(const CodecBenchOptions& options) {
  if (!options.peers) return std::nullopt;
  if (bench::runs({options.python, "-c", "import torch"}))
    return bench::start_codec_peer(options.python, find_script("peers.py"), options.threads);
  std::fprintf(
      stderr,
      "bench codecs: %s cannot import torch, so there is nothing to compare with; install python3-torch, "
      "or name another interpreter with --python\n",
      options.python.c_str());
  return std::nullopt;
}

int bench_codecs(const CodecBenchOptions& options, char** argv) {
  check_name("bench codecs", "model", options.model, one_of(shape_names()));
  check_number("bench codecs", "threads", options.threads, at_least(1).up_to(1024));
  check_number("bench codecs", "repetitions", options.repetitions, at_least(1).up_to(1000));
  for (const std::string& codec : options.codecs) parse_codec(codec);
  // The allocator of training, which the peer has too. Threads are asked for where they are used.
  ensure_settings(1, argv);
  bench::CodecBench codecs(options.model, options.threads, options.repetitions);
  const std::optional<bench::CodecPeer> peer = find_codec_peer(options);
  Json rows = Json::array();
  if (!options.json) std::cout << bench::table_head(codecs, options.threads) << std::flush;
  for (const std::string& codec : options.codecs.empty() ? codecs.default_codecs() : options.codecs) {
    if (::isatty(STDERR_FILENO)) std::fprintf(stderr, "%s ...\r", codec.c_str());
    const bench::CodecTiming timing = codecs.run(codec, peer ? &*peer : nullptr);
    if (options.json)
      rows.push_back(bench::to_json(codecs, options.threads, timing));
    else
      std::cout << bench::table_row(timing) << std::flush;
  }
  std::cout << (options.json ? rows.dump(2) + "\n" : bench::table_foot());
  return 0;
}

int bench_models(const ModelsBenchOptions& options, char** argv) {
  const auto cases = bench::model_cases(options.models, options.data, options.batch);
  ensure_settings(options.threads, argv);
  Json rows = Json::array();
  if (!options.json)
    std::printf("%-26s %-14s %11s %6s %6s %10s %18s %12s\n", "model", "data", "parameters", "batch", "steps",
                "step ms", "a second", "epoch s");
  for (const bench::ModelCase& chosen : cases) {
    if (::isatty(STDERR_FILENO)) std::fprintf(stderr, "%s ...\r", chosen.model.c_str());
    const bench::ModelTiming timing = bench::time_model(chosen, options);
    if (options.json)
      rows.push_back(to_json(chosen, options, timing));
    else
      std::printf("%-26s %-14s %11zu %6d %6d %10.1f %11.1f %-6s %12.0f\n", chosen.model.c_str(),
                  chosen.data.c_str(), timing.parameters, chosen.batch, timing.steps, timing.step_ms,
                  timing.samples_per_second(), timing.unit.c_str(), timing.epoch_seconds());
    std::fflush(stdout);
  }
  if (options.json)
    std::cout << rows.dump(2) << "\n";
  else
    std::printf(
        "Forward, backward and optimizer on made-up batches (of text: windows of %d tokens). Threads: %d.\n"
        "Epoch: one pass over the training set at this speed.\n",
        options.bptt, options.threads);
  return 0;
}

int bench_control(const bench::ControlBenchOptions& options, bool json, char** argv) {
  parse_model(options.model);
  ensure_settings(1, argv);
  const bench::ControlTiming timing = bench::time_control(options);
  if (json) {
    std::cout << to_json(options, timing).dump(2) << "\n";
    return 0;
  }
  std::printf(
      "%s, %zu parameters, %d samples a step, one thread: a step takes %.1f ms.\n"
      "Accordion adds %.2f ms to each for watching its gradients, and %.2f ms once in %d steps for "
      "deciding:\n"
      "%.2f %% of a step (goal: below 1 %%).\n",
      options.model.c_str(), timing.parameters, options.batch, timing.step_ms, timing.watch_ms,
      timing.decide_ms, timing.steps_per_epoch, 100 * timing.share());
  return 0;
}

}  // namespace

Run add_bench(CLI::App& verb, char** argv) {
  verb.require_subcommand(1);
  auto ddp_options = std::make_shared<DdpBenchOptions>();
  auto worker_options = std::make_shared<bench::WorkerOptions>();
  auto codec_options = std::make_shared<CodecBenchOptions>();

  CLI::App* ddp = verb.add_subcommand("ddp", "One training step of the C++ DDP beside PyTorch's own.");
  ddp->add_option("--models", ddp_options->models, "Models.")->delimiter(',')->capture_default_str();
  ddp->add_option("--workers", ddp_options->workers, "Numbers of workers.")
      ->delimiter(',')
      ->capture_default_str();
  ddp->add_option("--batch", ddp_options->batch, "Samples per worker.")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  ddp->add_option("--steps", ddp_options->steps, "Pairs of steps.")
      ->check(CLI::Range(6, 10000))
      ->capture_default_str();
  ddp->add_option("--python", ddp_options->python, "Interpreter with torch.")->capture_default_str();
  ddp->add_flag("--json", ddp_options->json, "One JSON array on standard output.");

  CLI::App* codecs = verb.add_subcommand("codecs", "Every codec beside its bound, and beside torch.");
  codecs->add_option("--model", codec_options->model, "Whose layers: " + join(shape_names()) + ".")
      ->capture_default_str();
  codecs
      ->add_option("--codecs", codec_options->codecs,
                   "Settings, separated by semicolons; otherwise all but ATOMO, whose SVDs take minutes.")
      ->delimiter(';');
  codecs->add_option("--threads", codec_options->threads, "Threads, each on whole layers.")
      ->capture_default_str();
  codecs->add_option("--repetitions", codec_options->repetitions, "Of which the fastest counts.")
      ->capture_default_str();
  codecs->add_flag("--peers,!--no-peers", codec_options->peers, "Time torch doing the same work.");
  codecs->add_option("--python", codec_options->python, "Interpreter with torch.")->capture_default_str();
  codecs->add_flag("--json", codec_options->json, "One JSON array on standard output.");

  CLI::App* control = verb.add_subcommand("control", "What adaptive control adds to a step.");
  auto control_options = std::make_shared<bench::ControlBenchOptions>();
  auto control_json = std::make_shared<bool>(false);
  control->add_option("--model", control_options->model, "Model.")->capture_default_str();
  control->add_option("--batch", control_options->batch, "Samples in a step.")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  control
      ->add_option("--steps-per-epoch", control_options->steps_per_epoch, "Over which a decision is spread.")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  control->add_option("--repetitions", control_options->repetitions, "Of which the middle one counts.")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  control->add_flag("--json", *control_json, "One JSON object on standard output.");

  CLI::App* models =
      verb.add_subcommand("models", "A training step of each model, and an epoch at its speed.");
  auto models_options = std::make_shared<ModelsBenchOptions>();
  models_options->threads = available_cores();
  models
      ->add_option("--model", models_options->models,
                   "Settings, separated by semicolons; otherwise every model.")
      ->delimiter(';');
  models->add_option("--data", models_options->data, "Data set; otherwise one that the model is meant for.");
  models
      ->add_option("--batch", models_options->batch,
                   "Images, windows of text or rows in a step; otherwise few for large models.")
      ->check(CLI::Range(1, 1 << 20));
  models->add_option("--bptt", models_options->bptt, "Tokens in a window of text.")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  models->add_option("--threads", models_options->threads, "Threads.")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  models->add_option("--seconds", models_options->seconds, "For the timed steps of one model.")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  models->add_flag("--json", models_options->json, "One JSON array on standard output.");

  CLI::App* worker = verb.add_subcommand("ddp-worker", "")->group("");
  worker->add_option("--model", worker_options->model)->required();
  worker->add_option("--batch", worker_options->batch)->required();
  worker->add_option("--channels", worker_options->channels)->required();
  worker->add_option("--size", worker_options->size)->required();
  worker->add_option("--classes", worker_options->classes)->required();

  return [codecs, control, models, worker, codec_options, control_options, control_json, ddp_options,
          models_options, worker_options, argv] {
    if (codecs->parsed()) return bench_codecs(*codec_options, argv);
    if (control->parsed()) return bench_control(*control_options, *control_json, argv);
    if (models->parsed()) return bench_models(*models_options, argv);
    return worker->parsed() ? bench_ddp_worker(*worker_options) : bench_ddp(*ddp_options);
  };
}

}  // namespace accordion::cli
