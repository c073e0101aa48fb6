#include "cli/local_ranks.h"

#include <filesystem>
#include <iostream>

#include "accordion/launch/free_port.h"
#include "accordion/launch/settings.h"
#include "accordion/launch/supervise.h"

namespace accordion::cli {
namespace {

int start_local_ranks(int count, char** argv) {
  const int threads = threads_per_rank(available_cores(), count), port = free_port();
  std::vector<WorkerSpec> workers;
  for (int rank = 0; rank < count; ++rank) {
    WorkerSpec worker{{std::filesystem::read_symlink("/proc/self/exe")}, worker_environment(threads)};
    for (char** argument = argv + 1; *argument; ++argument) worker.argv.push_back(*argument);
    worker.environment.merge(place_environment(
        {.rank = rank, .world = count, .local_rank = rank, .local_world = count, .port = port}));
    workers.push_back(std::move(worker));
  }
  const Ending ending = supervise(workers);
  if (!ending.message.empty()) std::cerr << "accordion: " << ending.message << "\n";
  return ending.interrupted ? 128 + ending.interrupted : ending.status;
}

}  // namespace

int run_in_group(int workers, char** argv, const std::function<int(const Place&, int threads)>& run) {
  const auto place = place_from_environment(::getenv);
  if (!place) return start_local_ranks(workers, argv);
  const int threads = threads_of_rank(*place, ::getenv);
  ensure_settings(threads, argv);
  return run(*place, threads);
}

}  // namespace accordion::cli
