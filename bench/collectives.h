// The collectives of a group of processes, beside Gloo's own all-reduce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "accordion/base/median.h"
#include "accordion/base/options.h"
#include "accordion/comm/group.h"

namespace accordion::bench {

struct CollectivesOptions {
  std::string operations = "sum,gather,broadcast";
  int from = 4, to = 256 << 20, factor = 8;
  double seconds = 1;
  int repetitions = 0;
  bool gloo = true;

  void fields(auto&& field) {
    field("operations", operations, "Of sum, gather, scatter and broadcast, separated by commas.");
    field("from", from, "Smallest size, in bytes.", at_least(4).up_to(1 << 30));
    field("to", to, "Largest size, in bytes; the last, whatever the factor.", at_least(4).up_to(1 << 30));
    field("factor", factor, "From one size to the next.", at_least(2).up_to(1024));
    field("seconds", seconds, "For each size, roughly.", at_least(0).up_to(3600));
    field("repetitions", repetitions, "For each size; 0 for as many as the seconds allow.",
          at_least(0).up_to(100000));
    field("gloo", gloo, "Time Gloo's all-reduce beside sums.");
  }
};

// Sizes and bandwidths are those of nccl-tests: the size of a gather or a scatter is what a rank holds afterwards, algorithm
// bandwidth is size over time, and bus bandwidth is that times what a link must carry at least: 2(N-1)/N of a
// sum, (N-1)/N of a gather or a scatter, all of a broadcast.
struct CollectiveTiming {
  std::string operation;
  std::size_t bytes;
  int repetitions;
  double ms, algorithm_gbs, bus_gbs;  // Median; GB/s of 10^9 bytes.
  double gloo_ms;                     // Of its all-reduce, for sums; else 0.
  Median ratio;                       // Ours over Gloo's: of pairs.
  std::uint64_t sent_bytes;           // By this rank, in one repetition.
};

// What the options ask for. Throws UsageError for an operation that there is not.
std::vector<std::string> operations_of(const CollectivesOptions& options);
// From the smallest size by the factor, and the largest; none where that is below the smallest.
std::vector<std::size_t> sizes_of(const CollectivesOptions& options);

// Verifies one collective at one size against what it must give, then times it. Called by all ranks; a time is
// that of the slowest rank. A sum takes turns with the all-reduce of `gloo`, a gloo_group of the same ranks, where there is one.
CollectiveTiming time_collective(Group& group, Group* gloo, const std::string& operation, std::size_t bytes,
                                 const CollectivesOptions& options);

// The same for as many repetitions as the seconds allow, at least three: of each, the time of the rank that took least. What
// the others took includes waiting.
std::vector<double> least_seconds(Group& group, const std::string& operation, std::size_t bytes,
                                  double seconds);

}  // namespace accordion::bench
