// A guard against ranks that think they run the same thing and do not: silently wrong sums, or a deadlock.
#pragma once

#include <span>
#include <string>

#include "accordion/base/error.h"
#include "accordion/comm/communicator.h"

namespace accordion {

struct Claim {
  std::string label;  // "configuration", "model", "data"
  std::string text;   // One fact a line.
};

struct RanksDiffer : Error {
  using Error::Error;
};

// Returns on every rank when all ranks make the same claims; otherwise throws RanksDiffer on every rank, which
// says which rank differs from rank 0 and in which line. Costs one small gather where all agree.
void require_agreement(Communicator& control, std::span<const Claim> claims);

}  // namespace accordion
