// What stands behind PyTorch's DistributedDataParallel when accordion.hook is its communication hook: the engine, driven by
// PyTorch's reducer, and on rank 0 the record of the run. No Python here.
#pragma once

#include <torch/csrc/distributed/c10d/comm.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accordion/base/state.h"
#include "accordion/comm/group.h"
#include "accordion/ddp/hook.h"
#include "accordion/engine/engine.h"
#include "accordion/run/recorder.h"

namespace accordion {

// Named as the options of `train`.
struct PluginOptions {
  ControlOptions control;
  std::string guard = "harmless";
  bool guard_given = false;  // Else it is what can be had.
  std::int64_t seed = 1;
  double clip = 0;
  bool overlap = true;
  std::string non_finite = "propagate";
  int threads = 1;

  void fields(auto&& field) {
    control.fields(field);
    field("guard", guard,
          "Who sees to it that compression pays: `harmless` sends as little as it can in steps no longer "
          "than plain "
          "DDP's, `fastest` takes the shortest steps, `none` obeys the controller. Without a word harmless, "
          "or none "
          "for codecs that cannot be guarded.",
          one_of(kGuardModes));
    field("seed", seed, "Seed of what codecs draw.", at_least(0));
    field("clip", clip, "Limit of each rank's gradient norm, before compression; 0 for none.", at_least(0));
    field("overlap", overlap, "Send gradients while backward goes on, rather than after it.");
    field("non-finite", non_finite,
          "Gradients of a step in which a rank's are not finite: NaN, which a gradient scaler takes as a "
          "sign to "
          "skip the step; 0; or an exception.",
          one_of(kNonFinites));
    field("threads", threads, "Threads that encode and decode layers side by side.", at_least(1));
  }
};

// A model as its DistributedDataParallel sees it.
struct PluginModel {
  std::string name;
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  bool find_unused_parameters = false;
  bool scaled = false;         // Losses are.
  bool follows_batch = false;  // The script takes the batch size that a controller chooses.
  // Of a model on a device: its own process group, for gradients that go dense.
  c10::intrusive_ptr<c10d::ProcessGroup> on_device = {};
  double learning_rate = std::numeric_limits<double>::quiet_NaN();
};

// What only the script knows of an epoch.
struct Metrics {
  std::optional<double> train_loss, test_loss, test_accuracy;
};

class Plugin {
 public:
  // Collective. `record`: the run's folder; empty for none.
  Plugin(const PluginOptions& options, Group group, PluginModel model, std::filesystem::path record);
  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  void post(c10d::GradBucket& bucket, c10::intrusive_ptr<c10::ivalue::Future> future, c10::IValue result);

  void end_step(double next_rate, bool last);
  void end_epoch(double next_rate, bool last, const Metrics& metrics);
  // The record's last word.
  void finish(const std::string& status);

  Engine& engine() { return engine_; }
  int size() const { return group_.size(); }
  // Tensors whose momentum the codec applies, so that the optimizer must not.
  std::vector<at::Tensor> own_momentum();

  // Since the start of training, whoever has run it.
  EpochStats totals();
  std::uint64_t sent_bytes() const { return sent_before_ + engine_.sent_bytes(); }
  // Rank 0's, epoch by epoch.
  const std::vector<EpochRecord>& epochs() const { return epochs_; }

  void save_state(const StateWriter& state);
  // Collective. `refused`: why what this rank was given is no state at all; empty where it is one.
  void load_state(const State& given, Residuals residuals, std::string refused);

 private:
  void begin();
  void open_record();
  void stop_together(const std::exception_ptr& refused, const std::string& otherwise);
  void require_used(const std::string& call) const;

  PluginOptions options_;
  Group group_;
  PluginModel model_;
  std::filesystem::path record_;
  std::vector<char> got_gradient_;  // Since the last step that was sent.
  std::vector<unsigned> gradient_hooks_;
  Engine engine_;
  BucketHook hook_;
  std::optional<Recorder> recorder_;
  std::vector<EpochRecord> epochs_;
  bool begun_ = false, loaded_ = false;
  bool ends_steps_ = false;  // The script says when.
  double rate_;
  std::chrono::steady_clock::time_point epoch_began_;
  EpochStats ended_;               // Of the epochs that have.
  std::uint64_t sent_before_ = 0;  // By the process that this one goes on from,
  std::uint64_t sent_recorded_ = 0;
};

}  // namespace accordion
