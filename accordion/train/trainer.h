// The training loop of one rank.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "accordion/data/dataset.h"
#include "accordion/ddp/ddp.h"
#include "accordion/engine/engine.h"
#include "accordion/log/epoch_record.h"
#include "accordion/models/network.h"
#include "accordion/run/checkpoints.h"
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

// What others have to say while it trains.
struct TrainerCalls {
  // This rank is asked to stop.
  std::function<bool()> stop_requested = [] { return false; };
  // Rank 0's: after a step, the epoch's last or another, whether a checkpoint is due. That of an epoch's end is written by whoever
  // keeps the record, which comes first: checkpoint_is_due().
  std::function<bool(bool last)> checkpoint_due = [](bool) { return false; };
  std::function<void()> write_checkpoint = [] {};
  std::function<void(const StepProgress&)> on_step = [](const StepProgress&) {};
};

class Trainer {
 public:
  // Builds the model from options.seed and gives every rank rank 0's weights; or goes on from a checkpoint of such a run. Compares
  // replicas every so many steps, and after every epoch; 0: then only.
  Trainer(const TrainOptions& options, const Dataset& data, Group& group,
          const LoadedCheckpoint* checkpoint = nullptr, int check_every = 0);

  // Trains the epoch that comes next, or what is left of it, and evaluates. Nothing when a rank wanted to stop: all ranks stop
  // after the same step, and write a checkpoint. Throws an Error on every rank when a rank's loss is no longer finite.
  std::optional<EpochRecord> run_epoch(const TrainerCalls& calls);

  // Of what was sent so far, so much is not for the record.
  void leave_out(std::uint64_t bytes) { sent_bytes_ += bytes; }

  // What comes next.
  const Position& position() const { return position_; }

  // Whether one was due after the epoch's last step; the same on all ranks.
  bool checkpoint_is_due() const { return checkpoint_is_due_; }

  // Everything that the rest of the run depends on. Collective; as Checkpoints::write.
  std::string write_checkpoint(Checkpoints& checkpoints);

  // One of the last steps, measured beside predicted, as text; on all ranks.
  std::string explain_step();

  // Of all ranks, in the epoch that comes next.
  std::int64_t samples_left() const { return samples_from(position_.epoch_step); }
  Engine& engine() { return engine_; }

 private:
  // After a step, known to all ranks.
  struct Verdict {
    bool stop = false, checkpoint = false;
  };

  void prepare_optimizer();
  void queue_epoch(std::int64_t batch, std::string reason);
  void queue_next_epoch();
  void load(const LoadedCheckpoint& checkpoint);
  State regrouped(const LoadedCheckpoint& checkpoint, const std::vector<State>& states) const;
  std::int64_t samples_from(std::int64_t first_step) const;
  double run_step(const Step& step);
  double schedule_rate(int epoch, std::int64_t step) const;
  double rate(int epoch, std::int64_t step) const;  // The learning rate of that step.
  void describe_control(EpochRecord& record) const;
  Verdict agree(const TrainerCalls& calls, bool finite);
  void describe_waiting(EpochRecord& record);

  TrainOptions options_;
  const Dataset& data_;
  Communicator& control_;
  std::shared_ptr<Network> model_;
  DistributedDataParallel<Network> ddp_;
  Engine& engine_;
  std::vector<std::string> names_;  // Of its tensors.
  int check_every_;
  Position position_;
  std::int64_t global_batch_ = 0;  // In force in the epoch that was queued last, with why,
  std::string batch_reason_;
  std::vector<Step> steps_;  // and how the epoch is cut into steps.
  // Of the epoch under way.
  double loss_sum_ = 0, seconds_ = 0;
  StepClock::time_point began_;     // Seconds count from here,
  StepClock::time_point together_;  // and this is when all ranks were last at one place.
  std::vector<double> late_;        // How long the others waited for each rank.
  std::uint64_t sent_bytes_ = 0;    // Before it.
  bool checkpoint_is_due_ = false;
  bool buckets_known_ = false;  // The run has sent already what its first steps alone send.
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::optional<DecayWithMomentum> decay_;  // Of tensors that get their momentum before they are compressed.
  std::unique_ptr<Feed> feed_;
  std::optional<TopEigenvalue> hessian_;
};

}  // namespace accordion
