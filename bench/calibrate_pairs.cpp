#include "bench/calibrate_pairs.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "accordion/base/median.h"

namespace accordion::bench {
namespace {

constexpr int kMostRanks = 16, kRepetitions = 4;  // The first does not count.
constexpr double kSeconds = 0.01;

// Seconds until both have what the other sent. The other ranks send nothing.
double exchange_seconds(Group& group, std::pair<int, int> pair, std::vector<std::byte>& sent,
                        std::vector<std::byte>& received) {
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<std::span<const std::byte>> send(ranks);
  std::vector<std::span<std::byte>> receive(ranks);
  const int rank = group.rank();
  if (rank == pair.first || rank == pair.second) {
    const auto other = static_cast<std::size_t>(rank == pair.first ? pair.second : pair.first);
    send[other] = sent;
    receive[other] = received;
  }
  std::int8_t here = 0;
  group.control().sum(std::span(&here, 1));
  const auto begin = std::chrono::steady_clock::now();
  group.gradients().all_to_all(send, receive);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  group.control().max(std::span(&seconds, 1));
  return seconds;
}

}  // namespace

Pairs measure_pairs(Group& group, double gbps) {
  std::vector<std::pair<int, int>> pairs;
  for (int a = 0; a < group.size(); ++a)
    for (int b = a + 1; b < group.size() && (group.size() <= kMostRanks || b == a + 1); ++b)
      pairs.emplace_back(a, b);
  const auto bytes = static_cast<std::size_t>(std::clamp(gbps * 1e9 / 8 * kSeconds, 64e3, 4e6));
  std::vector<std::byte> sent(bytes), received(bytes);
  std::vector<double> rates;
  for (const std::pair<int, int>& pair : pairs) {
    std::vector<double> seconds;
    for (int k = 0; k < kRepetitions; ++k) {
      const double taken = exchange_seconds(group, pair, sent, received);
      if (k > 0) seconds.push_back(taken);
    }
    rates.push_back(static_cast<double>(bytes) * 8 / 1e9 / std::max(1e-9, median_of(seconds).value));
  }
  const auto slowest = std::min_element(rates.begin(), rates.end());
  const std::pair<int, int>& pair = pairs[static_cast<std::size_t>(slowest - rates.begin())];
  return {.count = static_cast<int>(pairs.size()),
          .middle_gbps = median_of(rates).value,
          .slowest_gbps = *slowest,
          .slowest = {pair.first, pair.second}};
}

}  // namespace accordion::bench
