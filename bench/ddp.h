// Our DistributedDataParallel against PyTorch's, step by step in turn.
#pragma once

#include <string>
#include <vector>

namespace accordion::bench {

struct DdpCase {
  std::string model;
  int workers, batch, steps;
};

struct DdpTiming {
  DdpCase what;
  double ours_ms, torch_ms;             // medians of the steps
  double ratio, ratio_low, ratio_high;  // ours over torch's: median over pairs and its 95 % interval
  double hidden_share;                  // of communication, behind backward
};

struct DdpPaths {
  std::string program, python, peer;  // this program, python3 with torch, bench/ddp_peer.py
};

// Verifies that both give the same gradient, then times. Throws an Error when they differ.
DdpTiming time_ddp(const DdpCase& what, const DdpPaths& paths);

// Median with the 95 % interval that order statistics give, whatever the distribution.
struct Median {
  double value, low, high;
};
Median median_of(std::vector<double> values);

}  // namespace accordion::bench
