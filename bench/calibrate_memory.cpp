#include "bench/calibrate_memory.h"

#include <fstream>
#include <span>
#include <sstream>
#include <string>

#include "bench/digits.h"

namespace accordion::bench {
namespace {

constexpr double kShareForMessages = 0.5;

// As Linux estimates it: with what it can give back of caches. 0 where there is no such line.
double available_bytes() {
  std::ifstream file("/proc/meminfo");
  double kibibytes = 0;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("MemAvailable:")) std::istringstream(line.substr(line.find(':') + 1)) >> kibibytes;
  return 1024 * kibibytes;
}

}  // namespace

std::optional<double> measure_memory_gb(Communicator& control, int local_ranks) {
  double lacking = -available_bytes() / local_ranks;  // There is a largest of all ranks', and no least.
  control.max(std::span(&lacking, 1));
  if (lacking >= 0) return std::nullopt;
  return digits(kShareForMessages * -lacking / 1e9, 3);
}

}  // namespace accordion::bench
