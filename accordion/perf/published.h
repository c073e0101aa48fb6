// The published cost model ("On the utility of gradient compression in distributed training systems"): plain DDP overlaps all
// buckets but the last with backward, compressed methods overlap nothing. Times are of backward and aggregation; forward
// is no part of them. Table 4.2 (costs of collectives) is as printed; the formulas of a step are reconstructed. What our own
// exchange does is step.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accordion/perf/turning.h"

namespace accordion::perf::published {

struct Network {
  double latency = 0;    // Seconds a message: alpha.
  double bandwidth = 0;  // Bytes a second.
};

// Table 4.2; of a gather, `bytes` are one worker's.
enum class Aggregation { kRing, kTree, kParameterServer, kGather, kBroadcast };
double seconds(Aggregation aggregation, double bytes, int workers, const Network& network);

struct Training {
  double gradient_bytes = 0;
  double backward = 0;  // Seconds, of one worker alone.
  double slowdown = 1;  // Of backward while communication goes on beside it: gamma, at least 1.
  double bucket_bytes = 25 << 20;

  int buckets() const;
  double last_bucket_bytes() const;
};

struct Method {
  std::string name = {};
  double encode_decode = 0;      // Seconds, with what decoding takes however many workers there are.
  double decode_per_worker = 0;  // Seconds, for each worker's message.
  std::vector<double> summed = {},
                      gathered = {};  // Bytes of each message: P, Q and what stays dense; values and indices.

  double summed_bytes() const;
  double gathered_bytes() const;
};

double plain_seconds(const Training& training, int workers, const Network& network);
double method_seconds(const Method& method, const Training& training, int workers, const Network& network);

// Compression wins where its step is shorter.
bool wins(const Method& method, const Training& training, int workers, const Network& network);

// Where the winner changes, in bytes a second, on the network's latency; 0.1 to 1000 Gbit/s.
std::vector<double> break_even_bandwidths(const Method& method, const Training& training, int workers,
                                          double latency);

// The least ratio at which summed messages take no longer than `target` seconds; nothing where none does.
std::optional<double> needed_ratio(const Method& method, const Training& training, int workers,
                                   const Network& network, double target);

// The smallest number of workers, of 2 to `most`, at which the method loses, if any.
std::optional<int> loses_from(const Method& method, const Training& training, const Network& network,
                              int most);

}  // namespace accordion::perf::published
