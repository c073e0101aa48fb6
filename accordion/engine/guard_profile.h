// Whether compression pays, decided once, before the first step, by a profile (perf/profile.h). For codecs that keep the
// optimizer's momentum: they cannot change sides in mid-run, so nothing can be tried out there.
#pragma once

#include <span>
#include <string>

#include "accordion/comm/communicator.h"
#include "accordion/compress/codecs.h"
#include "accordion/engine/guard_mode.h"
#include "accordion/perf/pays.h"
#include "accordion/perf/profile.h"

namespace accordion {

struct ProfileVerdict {
  bool compress = false;
  double seconds = 0;  // Of a step, as chosen.
  std::string reason = {};
};

// Levels that may come into force are all compressed, or none is. So the one with the longest steps counts. Throws UsageError
// where the profile does not have one of them.
ProfileVerdict verdict_of(const perf::Profile& profile, const perf::ModelProfile& model,
                          std::span<const CodecOptions> levels, int ranks, perf::Goal goal);

// Rank 0 reads the file and decides. Throws on every rank where it cannot be read, or is of another model. Collective.
ProfileVerdict decide_by_profile(Communicator& ranks, const GuardProfile& profile,
                                 std::span<const CodecOptions> levels, std::size_t parameters,
                                 perf::Goal goal);

}  // namespace accordion
