// Real steps, to be held against what a profile predicts.
#pragma once

#include <string>
#include <vector>

#include "accordion/base/median.h"
#include "accordion/comm/group.h"
#include "bench/calibrate_model.h"

namespace accordion::bench {

// Steps of the C++ DDP, from forward to optimizer, for each codec; "none" is plain DDP. Codecs take turns. Called by all ranks;
// milliseconds of the slowest rank, in the order of the codecs.
std::vector<Median> measure_steps(Group& group, const ModelCase& model,
                                  const std::vector<std::string>& codecs,
                                  const ModelCalibration& calibration);

}  // namespace accordion::bench
