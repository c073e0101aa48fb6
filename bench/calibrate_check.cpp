#include "bench/calibrate_check.h"

#include "bench/real_step.h"

namespace accordion::bench {

constexpr int kInARow = 4;

std::vector<Median> measure_steps(Group& group, const ModelCase& chosen,
                                  const std::vector<std::string>& codecs,
                                  const ModelCalibration& calibration) {
  std::vector<RealSteps> steps;
  for (const std::string& codec : codecs) steps.emplace_back(group, chosen, codec, calibration.threads);
  std::vector<std::vector<double>> ms(codecs.size());
  double spent = 0;
  for (int turn = 0; turn < 3 || (spent < calibration.seconds && turn < 60); ++turn)
    for (std::size_t i = 0; i < codecs.size(); ++i)
      for (int step = 0; step <= kInARow; ++step) {
        const double seconds = slowest_step(steps[i], group.control());
        spent += seconds;                              // The same on all ranks, so they stop together.
        if (step > 0) ms[i].push_back(1e3 * seconds);  // The first finds another's numbers in the caches.
      }
  std::vector<Median> medians;
  for (const std::vector<double>& each : ms) medians.push_back(median_of(each));
  return medians;
}

}  // namespace accordion::bench
