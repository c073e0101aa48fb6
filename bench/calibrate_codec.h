// What a codec costs on a model's own gradients.
#pragma once

#include <string>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/perf/profile.h"
#include "bench/codec_trial.h"

namespace accordion::bench {

struct CodecCalibration {
  double seconds = 1;
  int threads = 1;
  std::size_t buckets = 1;
};

// Called by all ranks at the same time, as they encode in a step; times are the slowest rank's, medians.
perf::CodecProfile measure_codec(Communicator& control, const std::string& setting,
                                 const std::vector<TensorInfo>& tensors, const RealGradients& gradients,
                                 const CodecCalibration& calibration);

}  // namespace accordion::bench
