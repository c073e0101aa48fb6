#include "bench/ddp.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>

#include "accordion/base/error.h"
#include "accordion/base/median.h"
#include "accordion/base/temporary_folder.h"
#include "accordion/launch/free_port.h"
#include "accordion/launch/place.h"
#include "accordion/launch/settings.h"
#include "bench/crew.h"
#include "bench/lab.h"

namespace accordion::bench {
namespace {

namespace fs = std::filesystem;

std::vector<WorkerSpec> crew_specs(const DdpCase& what, const std::vector<std::string>& command,
                                   const std::optional<Lab>& lab) {
  const bool grey = what.model == "cnn";
  std::vector<WorkerSpec> specs;
  const int threads = threads_per_rank(available_cores(), what.workers);
  const int port = free_port();
  for (int rank = 0; rank < what.workers; ++rank) {
    WorkerSpec spec{command, worker_environment(threads)};
    for (const auto& [name, value] : {std::pair{"--model", what.model},
                                      {"--batch", std::to_string(what.batch)},
                                      {"--channels", std::string(grey ? "1" : "3")},
                                      {"--size", std::string(grey ? "28" : "32")},
                                      {"--classes", std::string("10")}}) {
      spec.argv.push_back(name);
      spec.argv.push_back(value);
    }
    Place place{
        .rank = rank, .world = what.workers, .local_rank = rank, .local_world = what.workers, .port = port};
    if (lab) {
      place.local_rank = 0;
      place.local_world = 1;
      place.address = lab->address(0);
      lab->move_to_host(static_cast<std::size_t>(rank), spec);
    }
    spec.environment.merge(place_environment(place));
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::vector<float> read_floats(const fs::path& path) {
  std::vector<float> values(fs::file_size(path) / sizeof(float));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(float)));
  return values;
}

void require_same_gradient(const fs::path& ours, const fs::path& theirs) {
  const std::vector<float> a = read_floats(ours), b = read_floats(theirs);
  if (a.size() != b.size() || a.empty())
    throw Error("bench ddp: our gradient has " + std::to_string(a.size()) + " values, PyTorch's " +
                std::to_string(b.size()));
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(a[i] - b[i], 2);
    norm += std::pow(b[i], 2);
  }
  const double relative = std::sqrt(difference / norm);
  if (!(relative < 1e-4))
    throw Error("bench ddp: our gradient differs from PyTorch's by " + std::to_string(relative) +
                " of its norm");
}

// A step takes as long as its slowest rank.
double slowest(const std::vector<std::vector<double>>& answers) {
  double seconds = 0;
  for (const auto& answer : answers) seconds = std::max(seconds, answer.at(0));
  return seconds;
}

}  // namespace

DdpTiming time_ddp(const DdpCase& what, const DdpPaths& paths) {
  const TemporaryFolder folder(fs::temp_directory_path() / "accordion-bench-");
  const std::string weights = folder.path() / "weights", our_gradient = folder.path() / "ours",
                    torch_gradient = folder.path() / "torch";
  std::optional<Lab> lab;
  if (!what.rate.empty()) lab.emplace(paths.netlab, what.workers, what.rate);
  Crew ours("accordion", crew_specs(what, {paths.program, "bench", "ddp-worker"}, lab));
  Crew theirs("PyTorch", crew_specs(what, {paths.python, paths.peer}, lab));
  ours.command("weights " + weights);
  ours.command("verify " + our_gradient);
  theirs.command("verify " + weights + " " + torch_gradient);
  require_same_gradient(our_gradient, torch_gradient);

  // Both crews stay alive, and one waits while the other steps; who goes first alternates. Buckets are
  // rebuilt in the first steps, which do not count.
  constexpr int kWarmUp = 3;
  std::vector<double> our_ms, torch_ms, ratios;
  double busy = 0, exposed = 0;
  for (int step = -kWarmUp; step < what.steps; ++step) {
    double mine = 0, their = 0;
    const auto ours_step = [&] {
      const auto answers = ours.command("step");
      mine = slowest(answers);
      if (step < 0) return;
      for (const auto& answer : answers) {
        busy += answer.at(1);
        exposed += answer.at(2);
      }
    };
    const auto their_step = [&] { their = slowest(theirs.command("step")); };
    if (step % 2 == 0) {
      ours_step();
      their_step();
    } else {
      their_step();
      ours_step();
    }
    if (step < 0) continue;
    our_ms.push_back(1e3 * mine);
    torch_ms.push_back(1e3 * their);
    ratios.push_back(mine / their);
  }
  const Median ratio = median_of(ratios);
  return {what,       median_of(our_ms).value, median_of(torch_ms).value, ratio.value, ratio.low,
          ratio.high, 1 - exposed / busy};
}

}  // namespace accordion::bench
