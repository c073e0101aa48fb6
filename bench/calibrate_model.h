// A model's step without its exchange: when backward ends and when its buckets are ready, and its gradients.
#pragma once

#include <c10/core/Device.h>

#include "accordion/comm/group.h"
#include "accordion/perf/profile.h"
#include "bench/codec_trial.h"
#include "bench/models.h"

namespace accordion::bench {

inline constexpr int kPositions = 30;  // Of a window of text.

struct ModelCalibration {
  double seconds = 20;
  int threads = 1;
  c10::Device device = c10::kCPU;  // Where the model computes.
};

struct MeasuredModel {
  perf::ModelProfile profile;  // Without codecs.
  std::vector<TensorInfo> tensors;
  RealGradients gradients;
};

// Called by all ranks: they compute at the same time, as in training, but send nothing. Times are the slowest rank's, medians.
MeasuredModel measure_model(Communicator& control, const ModelCase& model,
                            const ModelCalibration& calibration);

struct SumsBesideBackward {
  double delay = 0;  // How much later backward ends, in seconds, for each byte that a rank sends meanwhile.
  double crowding = 1;  // How many times as long sums take.
};

// Called by all ranks. By themselves sums are said to take so long.
SumsBesideBackward measure_sums_beside_backward(Group& group, const ModelCase& model, const perf::Cost& sums,
                                                const ModelCalibration& calibration);

}  // namespace accordion::bench
