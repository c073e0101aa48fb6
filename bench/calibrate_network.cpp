#include "bench/calibrate_network.h"

#include <algorithm>
#include <array>
#include <map>

#include "accordion/base/median.h"
#include "bench/collectives.h"
#include "bench/digits.h"

namespace accordion::bench {
namespace {

constexpr std::array<const char*, perf::kCollectives> kOperations = {"sum", "gather", "scatter"};
// Sums go beyond a bucket of 25 MiB. Gathers are of what a codec left of one.
constexpr std::size_t kSmallest = 32, kLargest = 8 << 20, kLargestSum = 32 << 20, kMostRange = 16 << 20,
                      kFactor = 2, kLeastRange = 256 << 10;
constexpr int kSweeps = 2, kLeastCalls = 5;

// A rank's bytes as a profile counts them, in units of nccl-tests, which are those of `bench collectives`.
std::size_t held_bytes(perf::Collective kind, std::size_t bytes, std::size_t ranks) {
  if (kind == perf::Collective::kSum) return bytes;
  return kind == perf::Collective::kGather ? bytes * ranks : bytes / (ranks - 1) * ranks;
}

// As a profile counts them; of a scatter, as many to each rank.
std::vector<std::size_t> byte_sizes(perf::Collective kind, std::size_t ranks) {
  const std::size_t unit = kind == perf::Collective::kScatter ? ranks - 1 : 1;
  std::vector<std::size_t> sizes;
  const std::size_t largest = kind == perf::Collective::kSum ? kLargestSum : kLargest;
  for (std::size_t bytes = kSmallest; bytes <= largest; bytes *= kFactor)
    sizes.push_back(std::max(unit, bytes / unit * unit));
  return sizes;
}

// One median for each size.
void time_sizes(Group& group, perf::Collective kind, double seconds, std::size_t least_range,
                std::vector<std::size_t>& sizes, std::vector<perf::Sample>& samples) {
  const double each = seconds / static_cast<double>(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double median =
        median_of(least_seconds(group, kOperations[static_cast<std::size_t>(kind)],
                                held_bytes(kind, sizes[i], static_cast<std::size_t>(group.size())), each))
            .value;
    samples.push_back({static_cast<double>(sizes[i]), median});
    // On a slow link larger sizes would take far more than their share, and the line is known well enough without them.
    if (median * kFactor * kLeastCalls > 3 * seconds && sizes[i] >= least_range) sizes.resize(i + 1);
  }
}

// One sample a size: the median of its sweeps. A message that took longer than a larger one was disturbed: it counts as that.
std::vector<perf::Sample> settled(const std::vector<perf::Sample>& samples) {
  std::map<double, std::vector<double>> by_size;
  for (const perf::Sample& sample : samples) by_size[sample.bytes].push_back(sample.seconds);
  std::vector<perf::Sample> result;
  for (const auto& [bytes, seconds] : by_size) result.push_back({bytes, median_of(seconds).value});
  for (std::size_t i = result.size() - 1; i-- > 0;)
    result[i].seconds = std::min(result[i].seconds, result[i + 1].seconds);
  return result;
}

}  // namespace

perf::NetworkProfile measure_network(Group& group, const NetworkCalibration& calibration,
                                     const Progress& progress) {
  perf::NetworkProfile network{.ranks = group.size(), .ranks_per_host = calibration.ranks_per_host};
  const auto kinds = {perf::Collective::kSum, perf::Collective::kGather, perf::Collective::kScatter};
  std::array<std::vector<std::size_t>, perf::kCollectives> sizes;
  std::array<std::vector<perf::Sample>, perf::kCollectives> samples;
  // Again and again, so that what disturbs the machine for a while meets all sizes, and few of their times.
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (const auto kind : kinds) {
      const auto k = static_cast<std::size_t>(kind);
      progress(std::string(kOperations[k]) + "s, " + std::to_string(sweep + 1) + " of " +
               std::to_string(kSweeps));
      if (sweep == 0) sizes[k] = byte_sizes(kind, static_cast<std::size_t>(group.size()));
      time_sizes(group, kind, calibration.seconds / perf::kCollectives / kSweeps,
                 kind == perf::Collective::kSum
                     ? std::clamp<std::size_t>(calibration.sum_bytes, kLeastRange, kMostRange)
                     : kLeastRange,
                 sizes[k], samples[k]);
    }
  for (const auto kind : kinds) {
    const std::vector<perf::Sample>& timed = samples[static_cast<std::size_t>(kind)];
    perf::CollectiveProfile& collective = network[kind] =
        perf::collective_of(kind, perf::fit_cost(settled(timed)), group.size(), calibration.ranks_per_host);
    for (perf::PieceProfile* piece : {&collective.piece, collective.small ? &*collective.small : nullptr})
      if (piece) *piece = {digits(piece->latency_us), digits(piece->bandwidth_gbps)};
    collective.r_squared = digits(collective.r_squared);
    for (const perf::Sample& sample : timed)
      collective.samples.push_back({sample.bytes, digits(1e6 * sample.seconds)});
  }
  network.bandwidth_gbps = calibration.bandwidth_gbps > 0
                               ? calibration.bandwidth_gbps
                               : network[perf::Collective::kSum].piece.bandwidth_gbps;
  return network;
}

}  // namespace accordion::bench
