// Our DistributedDataParallel against PyTorch's, step by step in turn.
#pragma once

#include <string>
#include <vector>

namespace accordion::bench {

struct DdpCase {
  std::string model;
  int workers, batch, steps;
  std::string
      rate;  // Of the links between hosts that netlab makes; empty: workers of this machine, over loopback.
};

struct DdpTiming {
  DdpCase what;
  double ours_ms, torch_ms;             // medians of the steps
  double ratio, ratio_low, ratio_high;  // ours over torch's: median over pairs and its 95 % interval
  double hidden_share;                  // of communication, behind backward
};

struct DdpPaths {
  // This program, python3 with torch, bench/ddp_peer.py, and, where there is a rate, tools/netlab.
  std::string program, python, peer, netlab;
};

// Verifies that both give the same gradient, then times. Throws an Error when they differ.
DdpTiming time_ddp(const DdpCase& what, const DdpPaths& paths);

}  // namespace accordion::bench
