// How fast any two ranks are by themselves: whether one link is slower than the others, which a collective's time does not tell.
#pragma once

#include "accordion/comm/group.h"

namespace accordion::bench {

struct Pairs {
  int count = 0;
  double middle_gbps = 0, slowest_gbps = 0;  // Each way at the same time.
  int slowest[2] = {0, 1};
};

// Every two of up to 16 ranks, one pair after the other; of more ranks, each and the next one. Messages are so large that they take
// a hundredth of a second at `gbps`. Called by all ranks, and the same on all of them.
Pairs measure_pairs(Group& group, double gbps);

}  // namespace accordion::bench
