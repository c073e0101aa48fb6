#include "bench/calibrate_network.h"

#include <algorithm>
#include <array>

#include "bench/collectives.h"
#include "bench/digits.h"
#include "accordion/base/median.h"

namespace accordion::bench {
namespace {

constexpr std::array<const char*, perf::kCollectives> kOperations = {"sum", "gather", "scatter"};
constexpr std::size_t kSmallest = 16, kLargest = 16 << 20, kFactor = 4, kLeastSizes = 6;
constexpr int kSweeps = 3, kLeastCalls = 5;

// A rank's bytes as a profile counts them, in units of nccl-tests, which are those of `bench collectives`.
std::size_t held_bytes(perf::Collective kind, std::size_t bytes, std::size_t ranks) {
  if (kind == perf::Collective::kSum) return bytes;
  return kind == perf::Collective::kGather ? bytes * ranks : bytes / (ranks - 1) * ranks;
}

struct SizeTimes {
  std::size_t bytes;  // As a profile counts them.
  std::vector<double> seconds;
};

// Of a scatter, as many to each rank.
std::vector<SizeTimes> sizes_of(perf::Collective kind, std::size_t ranks) {
  const std::size_t unit = kind == perf::Collective::kScatter ? ranks - 1 : 1;
  std::vector<SizeTimes> sizes;
  for (std::size_t bytes = kSmallest; bytes <= kLargest; bytes *= kFactor)
    sizes.push_back({std::max(unit, bytes / unit * unit), {}});
  return sizes;
}

void time_sizes(Group& group, perf::Collective kind, double seconds, std::vector<SizeTimes>& sizes) {
  const double each = seconds / static_cast<double>(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto times =
        least_seconds(group, kOperations[static_cast<std::size_t>(kind)],
                      held_bytes(kind, sizes[i].bytes, static_cast<std::size_t>(group.size())), each);
    sizes[i].seconds.insert(sizes[i].seconds.end(), times.begin(), times.end());
    // On a slow link larger sizes would take far more than their share, and the line is known well enough without them.
    if (median_of(times).value * kFactor * kLeastCalls > 3 * seconds && i >= kLeastSizes) sizes.resize(i + 1);
  }
}

std::vector<perf::Sample> samples_of(const std::vector<SizeTimes>& sizes) {
  std::vector<perf::Sample> samples;
  for (const SizeTimes& size : sizes)
    samples.push_back({static_cast<double>(size.bytes), median_of(size.seconds).value});
  return samples;
}

}  // namespace

perf::NetworkProfile measure_network(Group& group, const NetworkCalibration& calibration,
                                     const Progress& progress) {
  perf::NetworkProfile network{.ranks = group.size(), .ranks_per_host = calibration.ranks_per_host};
  const auto kinds = {perf::Collective::kSum, perf::Collective::kGather, perf::Collective::kScatter};
  std::array<std::vector<SizeTimes>, perf::kCollectives> times;
  for (const auto kind : kinds)
    times[static_cast<std::size_t>(kind)] = sizes_of(kind, static_cast<std::size_t>(group.size()));
  // Again and again, so that what disturbs the machine for a while meets all sizes, and few of their times.
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (const auto kind : kinds) {
      progress(std::string(kOperations[static_cast<std::size_t>(kind)]) + "s, " + std::to_string(sweep + 1) +
               " of " + std::to_string(kSweeps));
      time_sizes(group, kind, calibration.seconds / perf::kCollectives / kSweeps,
                 times[static_cast<std::size_t>(kind)]);
    }
  for (const auto kind : kinds) {
    const std::vector<perf::Sample> samples = samples_of(times[static_cast<std::size_t>(kind)]);
    perf::CollectiveProfile& collective = network[kind] =
        perf::collective_of(kind, perf::fit_cost(samples), group.size(), calibration.ranks_per_host);
    for (perf::PieceProfile* piece : {&collective.piece, collective.small ? &*collective.small : nullptr})
      if (piece) *piece = {digits(piece->latency_us), digits(piece->bandwidth_gbps)};
    collective.r_squared = digits(collective.r_squared);
    for (const perf::Sample& sample : samples)
      collective.samples.push_back({sample.bytes, digits(1e6 * sample.seconds)});
  }
  network.bandwidth_gbps = calibration.bandwidth_gbps > 0
                               ? calibration.bandwidth_gbps
                               : network[perf::Collective::kSum].piece.bandwidth_gbps;
  return network;
}

}  // namespace accordion::bench
