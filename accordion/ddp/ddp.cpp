#include "accordion/ddp/ddp.h"

#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <sstream>
#include <unordered_set>

#include "accordion/base/error.h"
#include "accordion/ddp/control_process_group.h"
#include "accordion/ddp/hook.h"
#include "accordion/engine/engine.h"
#include "accordion/exchange/agreement.h"

namespace accordion {
namespace {

EngineOptions engine_options(const DdpOptions& options) {
  return {.control = options.control,
          .guard = guard_or_harmless(options.guard, options.control, options.profile.given()),
          .profile = options.profile,
          .replayed_guard = options.replayed_guard,
          .communication = options.communication,
          .learning_rate = options.learning_rate,
          .seed = options.seed,
          .routing = options.routing,
          .threads = options.threads,
          .record_norms = options.record_norms};
}

// Everything that the size and order of messages follow from.
Group& require_same_model(Group& group, torch::nn::Module& module, const DdpOptions& options) {
  std::ostringstream text;
  for (const auto& item : module.named_parameters())
    text << item.key() << ' ' << item.value().sizes() << ' ' << item.value().scalar_type()
         << (item.value().requires_grad() ? "" : " frozen") << '\n';
  for (const auto& item : module.named_buffers())
    text << item.key() << ' ' << item.value().sizes() << ' ' << item.value().scalar_type() << '\n';
  std::ostringstream settings;
  settings << "bucket_bytes = " << options.bucket_bytes
           << "\nfirst_bucket_bytes = " << options.first_bucket_bytes
           << "\nfind_unused_parameters = " << options.find_unused_parameters << '\n';
  const Claim claims[] = {{"model", text.str()}, {"DdpOptions", settings.str()}};
  require_agreement(group.control(), claims);
  return group;
}

std::span<std::byte> bytes_of(torch::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

std::vector<std::pair<std::string, torch::Tensor>> exchanged_parameters(torch::nn::Module& module) {
  std::vector<std::pair<std::string, torch::Tensor>> result;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor& tensor = item.value();
    if (!tensor.requires_grad() || !seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
    require_exchangeable(item.key(), tensor);
    result.emplace_back(item.key(), tensor);
  }
  if (result.empty()) throw UsageError("the module has no parameter that needs a gradient");
  return result;
}

std::vector<TensorInfo> exchanged_tensors(torch::nn::Module& module) {
  std::vector<TensorInfo> tensors;
  for (const auto& [name, tensor] : exchanged_parameters(module))
    tensors.push_back({name, {tensor.sizes().vec()}});
  return tensors;
}

BucketCut cut_buckets(const std::vector<torch::Tensor>& tensors, const DdpOptions& options) {
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      tensors, {options.first_bucket_bytes, options.bucket_bytes}, std::vector<bool>(tensors.size(), false));
  return {std::move(buckets), std::move(limits)};
}

DataParallel::DataParallel(torch::nn::Module& module, Group& group, DdpOptions options,
                           std::unique_ptr<Controller> controller)
    : module_(module),
      group_(group),
      options_(options),
      // Braces: the ranks agree before one of them may refuse its model alone.
      engine_(new Engine{require_same_model(group, module, options), exchanged_tensors(module),
                         engine_options(options), std::move(controller)}) {
  std::unordered_map<size_t, std::string> index_names;
  for (const auto& [name, tensor] : exchanged_parameters(module)) {
    index_names[names_.size()] = name;
    names_.push_back(name);
    parameters_.push_back(tensor);
  }
  broadcast(module.parameters());
  sync_buffers();

  got_gradient_.assign(parameters_.size(), false);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    gradient_hooks_.push_back(
        parameters_[i].register_hook([this, i](const torch::Tensor&) { got_gradient_[i] = true; }));

  const std::vector<bool> sparse(parameters_.size(), false);
  auto [buckets, limits] = cut_buckets(parameters_, options_);
  // Backward reaches the last layers first.
  std::reverse(buckets.begin(), buckets.end());
  std::reverse(limits.begin(), limits.end());
  reducer_ = std::make_shared<c10d::Reducer>(parameters_, std::move(buckets), std::move(limits),
                                             c10::make_intrusive<ControlProcessGroup>(group_.control()),
                                             sparse, static_cast<std::int64_t>(options_.bucket_bytes),
                                             options_.find_unused_parameters,
                                             options_.gradient_as_bucket_view, std::move(index_names),
                                             static_cast<std::int64_t>(options_.first_bucket_bytes));
  // The reducer tells its logger, unasked whether there is one, when the set of unused parameters changes.
  logger_ = std::make_shared<c10d::Logger>(reducer_);
  reducer_->set_logger(logger_);
  reducer_->register_comm_hook(std::make_unique<BucketHook>(
      *engine_, parameters_, options_.find_unused_parameters ? &got_gradient_ : nullptr, options_.on_device));
}

DataParallel::~DataParallel() {
  for (std::size_t i = 0; i < gradient_hooks_.size(); ++i) parameters_[i].remove_hook(gradient_hooks_[i]);
}

EpochReport DataParallel::end_epoch(double next_learning_rate, bool last) {
  return engine_->end_epoch(next_learning_rate, last);
}

void DataParallel::end_step(double next_learning_rate, bool last) {
  engine_->end_step(next_learning_rate, last);
}

void DataParallel::set_batch(std::int64_t local_samples, std::int64_t global_samples) {
  engine_->set_batch(local_samples, global_samples);
}

void DataParallel::set_batch(std::int64_t local_samples) {
  engine_->set_batch(local_samples);
}

void DataParallel::before_forward() {
  if (!torch::GradMode::is_enabled()) return;
  check_complete();
  keep_buffers();
  if (sync_) reducer_->prepare_for_forward();
  reducer_->rebuild_buckets();
}

void DataParallel::expect_backward(const std::vector<torch::Tensor>& outputs) {
  if (!torch::GradMode::is_enabled() || !sync_) return;
  // Where unused parameters are looked for, one counts as used if any of the step's micro-batches used it.
  if (!options_.find_unused_parameters) std::fill(got_gradient_.begin(), got_gradient_.end(), false);
  reducer_->prepare_for_backward(outputs);
  awaiting_backward_ = true;
}

void DataParallel::backward(const torch::Tensor& loss) {
  loss.backward();
  check_complete();
}

// Without the search for unused parameters, a parameter without a gradient leaves its bucket unsent and the
// replicas apart.
void DataParallel::check_complete() {
  settle_buffers();
  if (!std::exchange(awaiting_backward_, false)) return;
  const std::vector<char> got = std::exchange(got_gradient_, std::vector<char>(names_.size(), false));
  if (options_.find_unused_parameters) return;
  std::string missing;
  std::size_t count = 0;
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (!got[i]) missing += (count++ ? ", " : "") + names_[i];
  if (count == names_.size()) return;  // A forward without a backward is no mistake.
  if (count > 0)
    throw Error("rank " + std::to_string(group_.rank()) + ": backward gave no gradient to " + missing +
                "; set find_unused_parameters, or take them out of the model");
}

void DataParallel::zero_grad() {
  for (torch::Tensor& parameter : parameters_)
    if (parameter.grad().defined()) parameter.mutable_grad().zero_();
}

void DataParallel::broadcast(std::vector<torch::Tensor> tensors) {
  torch::NoGradGuard no_grad;
  for (torch::Tensor& tensor : tensors) {
    torch::Tensor dense = tensor.cpu().contiguous();
    group_.control().broadcast(bytes_of(dense), 0);
    if (!dense.is_alias_of(tensor)) tensor.copy_(dense);
  }
}

void DataParallel::sync_buffers() {
  settle_buffers();
  broadcast(module_.buffers());
}

// Before the first forward of a step: BatchNorm's running values take in what it is shown at once, and a step
// that is skipped shall leave nothing behind.
void DataParallel::keep_buffers() {
  if (options_.communication.on_non_finite != NonFinite::kSkip || std::exchange(buffers_kept_, true)) return;
  const torch::NoGradGuard no_grad;
  const std::vector<torch::Tensor> buffers = module_.buffers();
  kept_buffers_.resize(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (kept_buffers_[i].defined())
      kept_buffers_[i].copy_(buffers[i]);
    else
      kept_buffers_[i] = buffers[i].clone();
}

// When a step has ended, on every rank: a step is dropped for all when one rank's gradients were not finite.
void DataParallel::settle_buffers() {
  const auto got = [](char one) { return one != 0; };
  if (!awaiting_backward_ || !std::any_of(got_gradient_.begin(), got_gradient_.end(), got)) return;
  if (!std::exchange(buffers_kept_, false) || engine_->last_step_kept()) return;
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> buffers = module_.buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(kept_buffers_[i]);
}

}  // namespace accordion
