#include "bench/real_step.h"

#include <torch/torch.h>

#include <chrono>
#include <cstdint>
#include <span>

#include "accordion/data/dataset.h"
#include "accordion/ddp/ddp.h"
#include "accordion/models/made_up.h"
#include "accordion/models/network.h"
#include "accordion/models/zoo.h"
#include "bench/calibrate_model.h"

namespace accordion::bench {
namespace {

constexpr int kUncounted = 3;  // Buckets are rebuilt, and memory is asked for, in the first steps.

}  // namespace

struct RealSteps::Training {
  Training(Group& group, const ModelCase& model, const InputShape& input, const std::string& codec,
           int threads)
      : ddp(make_model(model.model, input), group,
            {.gradient_as_bucket_view = true,
             .control = {.codec = codec},
             .guard = GuardMode::kNone,
             .threads = threads}),
        optimizer(ddp.module().parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9)),
        batch(made_up(input, model.batch, kPositions)) {}

  DistributedDataParallel<Network> ddp;
  torch::optim::SGD optimizer;
  MadeUpBatch batch;
};

RealSteps::RealSteps(Group& group, const ModelCase& model, const std::string& codec, int threads) {
  torch::set_num_threads(threads);
  torch::manual_seed(100 + static_cast<std::uint64_t>(group.rank()));  // Ranks draw samples of their own.
  training_ = std::make_unique<Training>(group, model, dataset_facts(model.data).input, codec, threads);
  for (int i = 0; i < kUncounted; ++i) step();
}

RealSteps::~RealSteps() = default;
RealSteps::RealSteps(RealSteps&&) noexcept = default;

void RealSteps::step() {
  auto& [ddp, optimizer, batch] = *training_;
  ddp.zero_grad();
  ddp.backward(torch::nn::functional::cross_entropy(ddp.forward(batch.input), batch.targets));
  optimizer.step();
}

double slowest_step(RealSteps& steps, Communicator& control) {
  std::int8_t here = 0;
  control.sum(std::span(&here, 1));
  const auto begin = std::chrono::steady_clock::now();
  steps.step();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  control.max(std::span(&seconds, 1));
  return seconds;
}

}  // namespace accordion::bench
