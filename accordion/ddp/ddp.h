// DistributedDataParallel for C++: every rank trains a replica on its own samples, and after each backward
// all replicas hold the same gradient, the mean over the samples of all ranks. Buckets of gradients travel
// while backward goes on, compressed as a controller decides after each epoch.
//
//   accordion::Group group = accordion::c10d_group(rendezvous);
//   accordion::DistributedDataParallel ddp(net, group,         // net: std::shared_ptr<Net> or a ModuleHolder
//       {.control = {.controller = "accordion",
//                    .mild = "powersgd:approx-rank=4", .strong = "powersgd:approx-rank=1"}});
//   for (int epoch = 0; epoch < epochs; ++epoch) {
//     for (auto& [input, target] : batches) {
//       optimizer.zero_grad();
//       ddp.set_batch(input.size(0), global_samples);          // only where ranks differ in their samples
//       ddp.backward(loss(ddp.forward(input), target));
//       optimizer.step();
//     }
//     ddp.end_epoch(next_learning_rate);                       // decides the levels of the next epoch
//   }
#pragma once

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "accordion/adapt/controller.h"
#include "accordion/comm/group.h"
#include "accordion/compress/routing.h"
#include "accordion/compress/tensor.h"
#include "accordion/engine/communication_options.h"
#include "accordion/engine/epoch_report.h"
#include "accordion/engine/guard_mode.h"

namespace c10d {
class Logger;
class Reducer;
}  // namespace c10d

namespace accordion {

class Engine;

struct DdpOptions {
  std::size_t bucket_bytes = 25 << 20;
  std::size_t first_bucket_bytes = 1 << 20;  // Small, so that communication starts early.
  // Search the graph for parameters that this step does not use. Without it, such a parameter is an error.
  bool find_unused_parameters = false;
  // Gradients are views into the buckets: saves a copy each way, but optimizer.zero_grad() then throws; use
  // DistributedDataParallel::zero_grad().
  bool gradient_as_bucket_view = false;
  // Of a module on a device: a process group of the same ranks that reduces there (NCCL), for gradients that go dense. Without it,
  // and for all others, gradients are exchanged in host memory.
  c10::intrusive_ptr<c10d::ProcessGroup> on_device = {};
  // Of the engine (engine.h): which codec, or which controller with which levels,
  ControlOptions control = {};
  // who sees to it that it pays: without a word, steps are to be no longer than plain ones (guard_mode.h); for a codec that
  // applies momentum itself, by a profile (guard_profile.h). Then engine().compresses() says whose the momentum of a tensor is,
  std::optional<GuardMode> guard = {};
  GuardProfile profile = {};
  std::vector<GuardEvent> replayed_guard = {};
  // when gradients travel, and what becomes of a step with values that are not finite,
  CommunicationOptions communication = {};
  // the rate of the first step, where it is known,
  double learning_rate = std::numeric_limits<double>::quiet_NaN();
  // and the rest.
  std::uint64_t seed = 0;
  Routing routing = {};
  int threads = 1;
  bool record_norms = false;
};

// A module's parameters that need a gradient, by name, in the order in which they are exchanged. Each once:
// tied weights carry several names. Throws UsageError for one that cannot be exchanged.
std::vector<std::pair<std::string, torch::Tensor>> exchanged_parameters(torch::nn::Module& module);
std::vector<TensorInfo> exchanged_tensors(torch::nn::Module& module);

// Which tensors share a bucket, by their places in the list, and the size that closed it. Backward's order gives the buckets that
// are sent from the second step on.
struct BucketCut {
  std::vector<std::vector<std::size_t>> buckets;
  std::vector<std::size_t> limits;
};
BucketCut cut_buckets(const std::vector<torch::Tensor>& tensors, const DdpOptions& options);

// Everything that does not depend on the signature of forward.
class DataParallel {
 public:
  // `controller` takes the place of the one that the options name.
  DataParallel(torch::nn::Module& module, Group& group, DdpOptions options,
               std::unique_ptr<Controller> controller = nullptr);
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // As the engine's.
  void set_batch(std::int64_t local_samples, std::int64_t global_samples);
  void set_batch(std::int64_t local_samples);

  // loss.backward(), and an Error that names the parameters which got no gradient. A plain loss.backward()
  // works too; then the next forward reports them.
  void backward(const torch::Tensor& loss);

  // While the returned object lives, backward only accumulates: for all but the last of a step's
  // micro-batches.
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(DataParallel& ddp) : ddp_(ddp), before_(std::exchange(ddp.sync_, false)) {}
    ~NoSync() { ddp_.sync_ = before_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    DataParallel& ddp_;
    bool before_;
  };
  NoSync no_sync() { return NoSync(*this); }

  // Zeroes gradients in place, which also suits gradients that are views into buckets.
  void zero_grad();

  // Gives every rank rank 0's buffers (running means of BatchNorm): before an evaluation or a checkpoint.
  void sync_buffers();

  // After every epoch: decides the levels of the next one. After every step too, where the controller watches
  // windows of steps. Collective.
  EpochReport end_epoch(double next_learning_rate, bool last = false);
  void end_step(double next_learning_rate, bool last = false);

  // Levels, counts, what the controller wants of the batch (engine.h, which this header does not bring along).
  Engine& engine() { return *engine_; }
  // Its tensors, in its order.
  const std::vector<torch::Tensor>& parameters() const { return parameters_; }

 protected:
  void before_forward();
  template <class Output>
  void after_forward(const Output& output);

 private:
  void expect_backward(const std::vector<torch::Tensor>& outputs);
  void broadcast(std::vector<torch::Tensor> tensors);
  void check_complete();
  void keep_buffers();
  void settle_buffers();

  torch::nn::Module& module_;
  Group group_;
  DdpOptions options_;
  std::vector<std::string> names_;
  std::vector<torch::Tensor> parameters_;
  std::vector<char> got_gradient_;  // Since the last step that was sent.
  std::vector<unsigned> gradient_hooks_;
  bool sync_ = true;
  bool awaiting_backward_ = false;
  std::vector<torch::Tensor> kept_buffers_;  // As they were before the step, where it may be dropped.
  bool buffers_kept_ = false;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<c10d::Reducer> reducer_;
  std::shared_ptr<c10d::Logger> logger_;
};

// The tensors in what forward returned, for the search of unused parameters.
inline void collect_tensors(const torch::Tensor& tensor, std::vector<torch::Tensor>& found) {
  found.push_back(tensor);
}
template <class Item>
void collect_tensors(const std::vector<Item>& items, std::vector<torch::Tensor>& found) {
  for (const Item& item : items) collect_tensors(item, found);
}
template <class... Items>
void collect_tensors(const std::tuple<Items...>& items, std::vector<torch::Tensor>& found) {
  std::apply([&](const auto&... item) { (collect_tensors(item, found), ...); }, items);
}
template <class A, class B>
void collect_tensors(const std::pair<A, B>& items, std::vector<torch::Tensor>& found) {
  collect_tensors(items.first, found);
  collect_tensors(items.second, found);
}

template <class Output>
void DataParallel::after_forward(const Output& output) {
  std::vector<torch::Tensor> tensors;
  if (options_.find_unused_parameters) collect_tensors(output, tensors);
  expect_backward(tensors);
}

template <class Module>
class DistributedDataParallel : public DataParallel {
 public:
  // Throws on every rank when the ranks' models or options differ.
  DistributedDataParallel(std::shared_ptr<Module> module, Group& group, DdpOptions options = {},
                          std::unique_ptr<Controller> controller = nullptr)
      : DataParallel(*module, group, std::move(options), std::move(controller)), module_(std::move(module)) {}
  DistributedDataParallel(const torch::nn::ModuleHolder<Module>& module, Group& group,
                          DdpOptions options = {})
      : DistributedDataParallel(module.ptr(), group, options) {}

  // Takes what the module's own forward takes.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    before_forward();
    auto output = module_->forward(std::forward<Arguments>(arguments)...);
    after_forward(output);
    return output;
  }

  Module& module() { return *module_; }
  Module* operator->() { return module_.get(); }

 private:
  std::shared_ptr<Module> module_;
};

template <class Contained>
DistributedDataParallel(const torch::nn::ModuleHolder<Contained>&, Group&, DdpOptions = {})
    -> DistributedDataParallel<Contained>;

// A module whose type is not known here; forward names its result: ddp.forward<torch::Tensor>(input).
template <>
class DistributedDataParallel<torch::nn::AnyModule> : public DataParallel {
 public:
  DistributedDataParallel(torch::nn::AnyModule module, Group& group, DdpOptions options = {})
      : DataParallel(*module.ptr(), group, options), module_(std::move(module)) {}

  template <class Output = torch::Tensor, class... Arguments>
  Output forward(Arguments&&... arguments) {
    before_forward();
    Output output = module_.forward<Output>(std::forward<Arguments>(arguments)...);
    after_forward(output);
    return output;
  }

 private:
  torch::nn::AnyModule module_;
};

}  // namespace accordion
