// accordion bench: verifies, then times.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>

#include "accordion/base/json.h"
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
#include "cli/fields.h"
#include "cli/split.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

namespace fs = std::filesystem;

const char* const kPython = "/usr/bin/python3";

struct DdpBenchOptions {
  std::string models = "cnn,resnet18";
  std::vector<int> workers = {2, 4};
  std::string rate;
  int batch = 8, steps = 20;
  std::string python = kPython;
  bool json = false;

  void fields(auto&& field) {
    field("models", models, "Models, separated by commas.");
    field("workers", workers, "Numbers of workers.", at_least(1).up_to(64));
    field("rate", rate,
          "Rates such as 100mbit,1gbit,none: each worker on a host of its own with such a link "
          "(docs/testbed.md); empty "
          "for loopback.");
    field("batch", batch, "Samples per worker.", at_least(1).up_to(4096));
    field("steps", steps, "Pairs of steps.", at_least(6).up_to(10000));
    field("python", python, "Interpreter with torch.");
    field("json", json, "One JSON array on standard output.");
  }
};

struct CodecBenchOptions {
  std::string model = "resnet50", codecs;
  int threads = 1, repetitions = 15;
  bool peers = true;
  std::string python = kPython;
  bool json = false;

  void fields(auto&& field) {
    field("model", model, "Whose layers.", one_of(shape_names()));
    field("codecs", codecs,
          "Settings, separated by semicolons; otherwise all but ATOMO, whose SVDs take minutes.");
    field("threads", threads, "Threads, each on whole layers.", at_least(1).up_to(1024));
    field("repetitions", repetitions, "Of which the fastest counts.", at_least(1).up_to(1000));
    field("peers", peers, "Time torch doing the same work.");
    field("python", python, "Interpreter with torch.");
    field("json", json, "One JSON array on standard output.");
  }
};

struct ControlVerbOptions : bench::ControlBenchOptions {
  bool json = false;

  void fields(auto&& field) {
    field("model", model, "Model.");
    field("batch", batch, "Samples in a step.", at_least(1).up_to(4096));
    field("steps-per-epoch", steps_per_epoch, "Over which a decision is spread.", at_least(1).up_to(1e6));
    field("repetitions", repetitions, "Of which the middle one counts.", at_least(1).up_to(1000));
    field("json", json, "One JSON object on standard output.");
  }
};

struct ModelsBenchOptions : bench::ModelBenchOptions {
  std::string model, data;
  int batch = 0;
  bool json = false;

  void fields(auto&& field) {
    field("model", model, "Settings, separated by semicolons; otherwise every model.");
    field("data", data, "Data set; otherwise one that the model is meant for.");
    field("batch", batch, "Images, windows of text or rows in a step; 0 for few of them for large models.",
          at_least(0).up_to(1 << 20));
    field("bptt", bptt, "Tokens in a window of text.", at_least(1).up_to(65536));
    field("threads", threads, "Threads.", at_least(1).up_to(1024));
    field("seconds", seconds, "For the timed steps of one model.", at_least(0).up_to(86400));
    field("json", json, "One JSON array on standard output.");
  }
};

// Scripts of bench/ and tools/ lie beside the build folder, or where `cmake --install` puts them: this program is
// build/accordion-torch or libexec/accordion/accordion-torch.
std::string find_script(const std::string& name, const std::string& folder = "bench") {
  const fs::path above = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  const fs::path places[] = {above / folder / name,
                             above.parent_path() / "share" / "accordion" / folder / name};
  for (const fs::path& place : places)
    if (fs::exists(place)) return place;
  throw Error("bench: " + name + " is neither at " + places[0].string() + " nor at " + places[1].string());
}

int bench_ddp(const DdpBenchOptions& options, char**) {
  const bench::DdpPaths paths{fs::read_symlink("/proc/self/exe"), options.python, find_script("ddp_peer.py"),
                              options.rate.empty() ? "" : find_script("netlab", "tools")};
  const std::vector<std::string> models = split(options.models, ',');
  for (const std::string& model : models)
    check_name("bench ddp", "model", model, one_of({"cnn", "resnet18", "resnet20"}));  // What the peer has.
  if (!bench::runs({options.python, "-c", "import torch.distributed"}))
    throw UsageError("bench ddp: " + options.python +
                     " cannot import torch; install python3-torch, or name another "
                     "interpreter with --python");
  Json rows = Json::array();
  if (!options.json)
    std::printf("%-10s %8s %7s %6s %11s %11s %7s %16s %8s\n", "model", "rate", "workers", "batch", "ours ms",
                "PyTorch ms", "ratio", "95 % interval", "hidden");
  for (const std::string& rate :
       options.rate.empty() ? std::vector<std::string>{""} : split(options.rate, ','))
    for (const std::string& model : models)
      for (int workers : options.workers) {
        if (::isatty(STDERR_FILENO)) std::fprintf(stderr, "%s with %d workers ...\r", model.c_str(), workers);
        const auto timing = bench::time_ddp({model, workers, options.batch, options.steps, rate}, paths);
        const std::string link = rate.empty() ? "loopback" : rate;
        if (options.json)
          rows.push_back({{"model", model},
                          {"rate", link},
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
          std::printf("%-10s %8s %7d %6d %11.2f %11.2f %7.3f   %.3f to %.3f %6.0f %%\n", model.c_str(),
                      link.c_str(), workers, options.batch, timing.ours_ms, timing.torch_ms, timing.ratio,
                      timing.ratio_low, timing.ratio_high, 100 * timing.hidden_share);
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
  bench::run_ddp_worker(rendezvous_at(*place), options);
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
  const std::vector<std::string> chosen = split(options.codecs, ';');
  for (const std::string& codec : chosen) parse_codec(codec);
  // The allocator of training, which the peer has too. Threads are asked for where they are used.
  ensure_settings(1, argv);
  bench::CodecBench codecs(options.model, options.threads, options.repetitions);
  const std::optional<bench::CodecPeer> peer = find_codec_peer(options);
  Json rows = Json::array();
  if (!options.json) std::cout << bench::table_head(codecs, options.threads) << std::flush;
  for (const std::string& codec : chosen.empty() ? codecs.default_codecs() : chosen) {
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
  const auto cases = bench::model_cases(split(options.model, ';'), options.data, options.batch);
  ensure_settings(options.threads, argv);
  Json rows = Json::array();
  if (!options.json)
    std::printf("%-26s %-14s %11s %6s %6s %10s %18s %12s\n", "model", "data", "parameters", "batch", "steps",
                "step ms", "a second", "epoch s");
  for (const bench::ModelCase& chosen : cases) {
    if (::isatty(STDERR_FILENO)) std::fprintf(stderr, "%s ...\r", chosen.model.c_str());
    const bench::ModelTiming timing = bench::time_model(chosen, options);
    if (options.json)
      rows.push_back(bench::to_json(chosen, options, timing));
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

int bench_control(const ControlVerbOptions& options, char** argv) {
  parse_model(options.model);
  ensure_settings(1, argv);
  const bench::ControlTiming timing = bench::time_control(options);
  if (options.json) {
    std::cout << bench::to_json(options, timing).dump(2) << "\n";
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

// A benchmark as a verb of its own: `options` on its command line, `run` with them.
template <class Options>
void add_benchmark(CLI::App& bench, std::vector<std::pair<CLI::App*, Run>>& benchmarks,
                   const std::string& name, const char* what, Options given,
                   int (*run)(const Options&, char**), char** argv) {
  auto options = std::make_shared<Options>(std::move(given));
  CLI::App* verb = bench.add_subcommand(name, what);
  add_fields(*verb, "bench " + name, *options);
  benchmarks.emplace_back(verb, [=] { return run(*options, argv); });
}

}  // namespace

Run add_bench(CLI::App& verb, char** argv) {
  verb.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Run>> benchmarks;
  const auto add = [&](const char* name, const char* what, auto options, auto run) {
    add_benchmark(verb, benchmarks, name, what, std::move(options), run, argv);
  };
  add("ddp", "One training step of the C++ DDP beside PyTorch's own.", DdpBenchOptions{}, bench_ddp);
  add("codecs", "Every codec beside its bound, and beside torch.", CodecBenchOptions{}, bench_codecs);
  add("control", "What adaptive control adds to a step.", ControlVerbOptions{}, bench_control);
  ModelsBenchOptions models;
  models.threads = available_cores();
  add("models", "A training step of each model, and an epoch at its speed.", models, bench_models);

  CLI::App* worker = verb.add_subcommand("ddp-worker", "")->group("");
  auto worker_options = std::make_shared<bench::WorkerOptions>();
  worker->add_option("--model", worker_options->model)->required();
  worker->add_option("--batch", worker_options->batch)->required();
  worker->add_option("--channels", worker_options->channels)->required();
  worker->add_option("--size", worker_options->size)->required();
  worker->add_option("--classes", worker_options->classes)->required();
  benchmarks.push_back(add_bench_collectives(verb, argv));
  benchmarks.emplace_back(worker, [=] { return bench_ddp_worker(*worker_options); });

  return [benchmarks] {
    for (const auto& [benchmark, run] : benchmarks)
      if (benchmark->parsed()) return run();
    throw UsageError("bench: no benchmark given");
  };
}

}  // namespace accordion::cli
