#include "accordion/launch/settings.h"

#include <malloc.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>
#include <thread>

#include "accordion/base/error.h"

namespace accordion {
namespace {

// Set while the program is run again, so that a variable that does not stick cannot make it do so for ever.
constexpr const char* kGuard = "ACCORDION_RUN_AGAIN";

// glibc otherwise maps and unmaps each large tensor, and the page faults cost more than the arithmetic.
constexpr const char* kAllocator =
    "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184:"
    "glibc.malloc.top_pad=268435456:glibc.malloc.arena_max=1";

// The same, less huge pages, which mallopt does not offer.
void set_allocator() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);
  ::mallopt(M_TOP_PAD, 268435456);
  ::mallopt(M_ARENA_MAX, 1);
}

// Of the list that OpenMP takes, the number for the outermost level.
int given_threads(std::string_view list) {
  constexpr int kMostThreads = 1024;
  const std::string_view first = list.substr(0, list.find(','));
  int threads = 0;
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), threads);
  if (error != std::errc() || end != first.data() + first.size() || threads < 1 || threads > kMostThreads)
    throw UsageError("OMP_NUM_THREADS=" + std::string(list) + ", expected a whole number from 1 to " +
                     std::to_string(kMostThreads));
  return threads;
}

}  // namespace

std::map<std::string, std::string> worker_environment(int threads, const GetVariable& get) {
  std::map<std::string, std::string> missing;
  // OpenBLAS follows OMP_NUM_THREADS where it has no variable of its own, so a user's choice there covers
  // both.
  if (!get("OMP_NUM_THREADS")) {
    missing["OMP_NUM_THREADS"] = std::to_string(threads);
    if (!get("OPENBLAS_NUM_THREADS")) missing["OPENBLAS_NUM_THREADS"] = std::to_string(threads);
  }
  if (!get("GLIBC_TUNABLES")) missing["GLIBC_TUNABLES"] = kAllocator;
  return missing;
}

bool ensure_settings(int threads, char* const* argv) {
  const bool again = ::getenv(kGuard) != nullptr;
  if (again) {
    ::unsetenv(kGuard);
    // The kernel named the process after /proc/self/exe.
    const std::string_view path = argv[0] ? argv[0] : "accordion";
    ::prctl(PR_SET_NAME, path.substr(path.rfind('/') + 1).data());
  }
  const std::map<std::string, std::string> missing = worker_environment(threads);
  if (missing.empty()) return true;
  for (const auto& [name, value] : missing) ::setenv(name.c_str(), value.c_str(), 1);
  if (!again) {
    ::setenv(kGuard, "1", 1);
    ::execv("/proc/self/exe", argv);
    ::unsetenv(kGuard);
  }
  set_allocator();
  return false;
}

int available_cores() {
  // The kernel refuses a set smaller than its own, which may exceed cpu_set_t's 1024.
  for (int bits = CPU_SETSIZE; bits <= 1 << 20; bits *= 2) {
    const std::size_t bytes = CPU_ALLOC_SIZE(bits);
    const auto free_set = [](cpu_set_t* set) { CPU_FREE(set); };
    const std::unique_ptr<cpu_set_t, decltype(free_set)> set(CPU_ALLOC(bits), free_set);
    if (set && ::sched_getaffinity(0, bytes, set.get()) == 0)
      return std::max(1, CPU_COUNT_S(bytes, set.get()));
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

int threads_per_rank(int cores, int local_world) {
  return std::max(1, cores / std::max(1, local_world));
}

int threads_of_rank(const Place& place, const GetVariable& get) {
  if (const char* given = get("OMP_NUM_THREADS"); given && *given) return given_threads(given);
  const int cores = available_cores();
  const bool bound = cores < static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  return bound && !place.source.empty() ? cores : threads_per_rank(cores, place.local_world);
}

}  // namespace accordion
