#include "accordion/perf/published.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace accordion::perf::published {
namespace {

constexpr Range kBandwidths{0.1e9 / 8, 1000e9 / 8};

double total(const std::vector<double>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

}  // namespace

double seconds(Aggregation aggregation, double bytes, int workers, const Network& network) {
  const double others = workers - 1, depth = std::log2(workers), transfer = bytes / network.bandwidth;
  switch (aggregation) {
    case Aggregation::kRing:
      return 2 * others * network.latency + 2 * transfer * others / workers;
    case Aggregation::kTree:
      return 2 * depth * network.latency + 2 * transfer * depth;
    case Aggregation::kParameterServer:
      return workers == 1 ? 0 : 2 * network.latency + 2 * transfer * others;
    case Aggregation::kGather:
      return others * network.latency + transfer * others;
    case Aggregation::kBroadcast:
      return depth * network.latency + transfer * depth;
  }
  return 0;
}

int Training::buckets() const {
  return std::max(1, static_cast<int>(std::ceil(gradient_bytes / bucket_bytes)));
}

double Training::last_bucket_bytes() const {
  return gradient_bytes - (buckets() - 1) * bucket_bytes;
}

double Method::summed_bytes() const {
  return total(summed);
}
double Method::gathered_bytes() const {
  return total(gathered);
}

double plain_seconds(const Training& training, int workers, const Network& network) {
  const int buckets = training.buckets();
  // Of one bucket, nothing goes on beside backward; nor does it with one worker.
  const double slowdown = buckets == 1 || workers == 1 ? 1 : training.slowdown;
  const double hidden = (buckets - 1) * seconds(Aggregation::kRing, training.bucket_bytes, workers, network);
  return std::max(slowdown * training.backward, hidden) +
         seconds(Aggregation::kRing, training.last_bucket_bytes(), workers, network);
}

double method_seconds(const Method& method, const Training& training, int workers, const Network& network) {
  double sum = training.backward + method.encode_decode + workers * method.decode_per_worker;
  for (const double bytes : method.summed) sum += seconds(Aggregation::kRing, bytes, workers, network);
  for (const double bytes : method.gathered) sum += seconds(Aggregation::kGather, bytes, workers, network);
  return sum;
}

bool wins(const Method& method, const Training& training, int workers, const Network& network) {
  return method_seconds(method, training, workers, network) < plain_seconds(training, workers, network);
}

std::vector<double> break_even_bandwidths(const Method& method, const Training& training, int workers,
                                          double latency) {
  const auto difference = [&](double bandwidth) {
    const Network network{latency, bandwidth};
    return plain_seconds(training, workers, network) - method_seconds(method, training, workers, network);
  };
  return turning_points(difference, kBandwidths);
}

std::optional<double> needed_ratio(const Method& method, const Training& training, int workers,
                                   const Network& network, double target) {
  const auto calls = static_cast<double>(method.summed.size());
  const double left = target - training.backward - method.encode_decode - workers * method.decode_per_worker -
                      calls * seconds(Aggregation::kRing, 0, workers, network);
  if (left <= 0) return std::nullopt;
  const Network no_latency{0, network.bandwidth};
  return seconds(Aggregation::kRing, training.gradient_bytes, workers, no_latency) / left;
}

std::optional<int> loses_from(const Method& method, const Training& training, const Network& network,
                              int most) {
  for (int workers = 2; workers <= most; ++workers)
    if (!wins(method, training, workers, network)) return workers;
  return std::nullopt;
}

}  // namespace accordion::perf::published
