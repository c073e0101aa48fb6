#include "bench/calibrate_check.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "accordion/data/dataset.h"
#include "accordion/ddp/ddp.h"
#include "accordion/models/made_up.h"
#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace accordion::bench {
namespace {

constexpr int kUncounted = 3;  // Buckets are rebuilt, and memory is asked for, in the first steps.

class CodecStep {
 public:
  CodecStep(Group& group, const ModelCase& chosen, const std::string& codec, int threads)
      : ddp_(make_model(chosen.model, dataset_facts(chosen.data).input), group,
             {.gradient_as_bucket_view = true, .control = {.codec = codec}, .threads = threads}),
        optimizer_(ddp_.module().parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9)) {}

  double run(Communicator& control, const MadeUpBatch& batch) {
    std::int8_t here = 0;
    control.sum(std::span(&here, 1));
    const auto begin = std::chrono::steady_clock::now();
    ddp_.zero_grad();
    ddp_.backward(torch::nn::functional::cross_entropy(ddp_.forward(batch.input), batch.targets));
    optimizer_.step();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    control.max(std::span(&seconds, 1));
    return seconds;
  }

 private:
  DistributedDataParallel<Network> ddp_;
  torch::optim::SGD optimizer_;
};

}  // namespace

std::vector<Median> measure_steps(Group& group, const ModelCase& chosen,
                                  const std::vector<std::string>& codecs,
                                  const ModelCalibration& calibration) {
  torch::set_num_threads(calibration.threads);
  torch::manual_seed(100 + static_cast<std::uint64_t>(group.rank()));
  const MadeUpBatch batch = made_up(dataset_facts(chosen.data).input, chosen.batch, kPositions);
  std::vector<std::unique_ptr<CodecStep>> steps;
  for (const std::string& codec : codecs)
    steps.push_back(std::make_unique<CodecStep>(group, chosen, codec, calibration.threads));
  std::vector<std::vector<double>> ms(codecs.size());
  double spent = 0;
  for (int turn = -kUncounted; turn < 5 || (spent < calibration.seconds && turn < 200); ++turn)
    for (std::size_t i = 0; i < codecs.size(); ++i) {
      const double seconds = steps[i]->run(group.control(), batch);
      if (turn < 0) continue;
      spent += seconds;  // The same on all ranks, so they stop together.
      ms[i].push_back(1e3 * seconds);
    }
  std::vector<Median> medians;
  for (const std::vector<double>& each : ms) medians.push_back(median_of(each));
  return medians;
}

}  // namespace accordion::bench
