// The training loop of one rank.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "accordion/data/dataset.h"
#include "accordion/ddp/ddp.h"
#include "accordion/log/epoch_record.h"
#include "accordion/models/network.h"
#include "accordion/run/options.h"
#include "accordion/train/feed.h"
#include "accordion/train/hessian.h"
#include "accordion/train/optimizer.h"

namespace accordion {

// How far an epoch is; reported after every step.
struct StepProgress {
  int epoch;
  std::int64_t step, steps;
  std::int64_t global_samples;  // of this step
  double loss;                  // of this rank's samples
};

class Trainer {
 public:
  // Builds the model from options.seed and gives every rank rank 0's weights.
  Trainer(const TrainOptions& options, const Dataset& data, Group& group);

  // Trains one epoch and evaluates. Nothing when a rank wanted to stop: all ranks stop after the same step.
  // Throws an Error on every rank when a rank's loss is no longer finite.
  std::optional<EpochRecord> run_epoch(int epoch, const std::function<bool()>& stop_requested,
                                       const std::function<void(const StepProgress&)>& on_step);

  // One of the last steps, measured beside predicted, as text; on all ranks.
  std::string explain_step();

  Network& model() { return ddp_.module(); }
  std::int64_t epoch_samples() const;  // Of all ranks, in the epoch that comes next.

 private:
  void prepare_optimizer();
  void queue_epoch(int epoch);
  double run_step(const Step& step);
  double schedule_rate(int epoch, std::int64_t step) const;
  double rate(int epoch, std::int64_t step) const;  // The learning rate of that step.
  void describe_control(EpochRecord& record) const;
  void require_same_weights(int epoch);
  bool agree_to_stop(bool stop_requested, bool finite, int epoch, std::int64_t step);

  TrainOptions options_;
  const Dataset& data_;
  Communicator& control_;
  std::shared_ptr<Network> model_;
  DistributedDataParallel<Network> ddp_;
  Engine& engine_;
  std::int64_t global_batch_ = 0;  // In force in the epoch that was queued last, with why
  std::string batch_reason_;
  std::uint64_t sent_bytes_ = 0;  // When the last epoch was recorded.
  std::vector<Step> steps_;       // and how the epoch is cut into steps.
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::optional<DecayWithMomentum> decay_;  // Of tensors that get their momentum before they are compressed.
  std::unique_ptr<Feed> feed_;
  std::optional<TopEigenvalue> hessian_;
};

}  // namespace accordion
