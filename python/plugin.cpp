#include "python/plugin.h"

#include <torch/version.h>

#include <cmath>

#include "accordion/adapt/controllers.h"
#include "accordion/base/error.h"
#include "accordion/base/json.h"

namespace accordion {
namespace {

std::vector<TensorInfo> tensors_of(const PluginModel& model) {
  if (model.parameters.empty()) throw UsageError("State: the model has no parameter that needs a gradient");
  std::vector<TensorInfo> tensors;
  for (const auto& [name, tensor] : model.parameters) {
    require_exchangeable(name, tensor);
    tensors.push_back({name, {tensor.sizes().vec()}});
  }
  return tensors;
}

std::vector<at::Tensor> without_names(const PluginModel& model) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : model.parameters) tensors.push_back(tensor);
  return tensors;
}

// A batch size that nobody takes would be decided for nothing.
void require_followed(const ControlOptions& control) {
  const ControllerKind kind = find_controller(control.controller);
  if (kind.batch == SetsBatch::kAlways || (kind.batch == SetsBatch::kInstead && control.controls_batch()))
    throw UsageError("State: controller=" + kind.name + (control.controls_batch() ? " with batch-mild" : "") +
                     " chooses batch sizes, which a State does not pass on; use accordion.BatchSize");
}

EngineOptions engine_options(const PluginOptions& options, const PluginModel& model, bool record) {
  check("State", options);
  if (!model.follows_batch) require_followed(options.control);
  check_control("State", options.control);
  const std::optional<GuardMode> guard =
      options.guard_given ? std::optional(guard_mode(options.guard)) : std::nullopt;
  check_guard("State", guard.value_or(GuardMode::kNone), options.control);
  return {.control = options.control,
          .guard = guard_or_harmless(guard, options.control),
          .communication = {.on_non_finite = non_finite(options.non_finite),
                            .deferred = !options.overlap,
                            .clip_norm = options.clip},
          .learning_rate = model.learning_rate,
          .seed = static_cast<std::uint64_t>(options.seed),
          .threads = options.threads,
          .record_norms = record,
          .scaled = model.scaled};
}

EpochStats& operator+=(EpochStats& sum, const EpochStats& other) {
  sum.steps += other.steps;
  sum.dropped_steps += other.dropped_steps;
  sum.traffic.payload_bytes += other.traffic.payload_bytes;
  sum.traffic.wire_bytes += other.traffic.wire_bytes;
  sum.traffic.paper_floats += other.traffic.paper_floats;
  sum.traffic.entries += other.traffic.entries;
  sum.traffic.saturated += other.traffic.saturated;
  sum.traffic.control_bytes += other.traffic.control_bytes;
  return sum;
}

}  // namespace

Plugin::Plugin(const PluginOptions& options, Group group, PluginModel model, std::filesystem::path record)
    : options_(options),
      group_(std::move(group)),
      model_(std::move(model)),
      record_(std::move(record)),
      engine_(group_, tensors_of(model_), engine_options(options_, model_, !record_.empty())),
      hook_(engine_, without_names(model_), model_.find_unused_parameters ? &got_gradient_ : nullptr,
            model_.on_device),
      rate_(model_.learning_rate) {
  got_gradient_.assign(model_.parameters.size(), false);
  if (!model_.find_unused_parameters) return;
  for (std::size_t i = 0; i < model_.parameters.size(); ++i)
    gradient_hooks_.push_back(
        model_.parameters[i].second.register_hook([this, i](const at::Tensor&) { got_gradient_[i] = true; }));
}

Plugin::~Plugin() {
  for (std::size_t i = 0; i < gradient_hooks_.size(); ++i)
    model_.parameters[i].second.remove_hook(gradient_hooks_[i]);
}

// All ranks stop where one does: they would wait for it.
void Plugin::stop_together(const std::exception_ptr& refused, const std::string& otherwise) {
  std::int8_t stop = refused != nullptr;
  group_.control().max(std::span(&stop, 1));
  if (refused) std::rethrow_exception(refused);
  if (stop) throw UsageError(otherwise);
}

void Plugin::begin() {
  if (begun_) return;
  epoch_began_ = std::chrono::steady_clock::now();
  std::exception_ptr refused;
  try {
    if (!record_.empty() && group_.rank() == 0) open_record();
  } catch (...) {
    refused = std::current_exception();
  }
  stop_together(refused, "State: rank 0 cannot write its record, and says why");
  begun_ = true;
}

// A folder that holds a run is taken only to go on with it.
void Plugin::open_record() {
  std::error_code ignored;
  if (!loaded_ && std::filesystem::exists(record_ / kConfigFile, ignored))
    throw UsageError("State: record=" + record_.string() +
                     " holds a run already; give another folder, or load_state_dict() before the first step "
                     "to go on with it");
  Json options = to_json(options_);
  options["model"] = model_.name;
  options["guard"] = kGuardModes[static_cast<std::size_t>(engine_.options().guard)];
  Json config = run_config(options, group_.size(), options_.threads, TORCH_VERSION);
  // The model is the script's, and nobody else can build it.
  for (std::size_t i = 0; i < engine_.tensors(); ++i)
    config["tensors"].push_back({{"name", engine_.tensor(i).name}, {"shape", engine_.tensor(i).shape.dims}});
  recorder_.emplace(RunFolder(record_, IfTaken::kContinue), options_.control, config, epochs_);
}

void Plugin::post(c10d::GradBucket& bucket, c10::intrusive_ptr<c10::ivalue::Future> future,
                  c10::IValue result) {
  begin();
  hook_.post(bucket, std::move(future), std::move(result));
  if (bucket.isLast()) std::fill(got_gradient_.begin(), got_gradient_.end(), false);
}

void Plugin::require_used(const std::string& call) const {
  if (!begun_)
    throw UsageError(
        call +
        " before any gradient has come: call ddp.register_comm_hook(state, accordion.hook) before "
        "training");
}

void Plugin::end_step(double next_rate, bool last) {
  require_used("step_end()");
  ends_steps_ = true;
  engine_.end_step(next_rate, last);
}

void Plugin::end_epoch(double next_rate, bool last, const Metrics& metrics) {
  require_used("epoch_end()");
  if (options_.control.window > 0 && !ends_steps_)
    throw UsageError("epoch_end(): window=" + std::to_string(options_.control.window) +
                     " expects state.step_end(optimizer) after every step");
  const std::int64_t batch = engine_.batch();  // In force in the epoch that ends.
  const std::string batch_reason = engine_.batch_reason();
  EpochReport report = engine_.end_epoch(next_rate, last);
  ended_ += report.stats;
  const auto now = std::chrono::steady_clock::now();
  EpochRecord record = to_record(std::move(report));
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  record.lr = std::isnan(rate_) ? next_rate : rate_;
  record.seconds = std::chrono::duration<double>(now - epoch_began_).count();
  record.train_loss = metrics.train_loss.value_or(unknown);
  record.test_loss = metrics.test_loss.value_or(unknown);
  record.test_accuracy = metrics.test_accuracy;
  const std::uint64_t sent = sent_bytes();
  record.sent_bytes = sent - std::exchange(sent_recorded_, sent);
  if (options_.control.controls_batch()) {
    record.global_batch = batch;
    // The schedule is written for the mild batch, and the script's steps grow with the batch.
    record.schedule_lr = record.lr;
    record.lr *= static_cast<double>(batch) / static_cast<double>(options_.control.batch_mild);
    record.batch_reason = batch_reason;
  }
  rate_ = next_rate;
  epoch_began_ = now;
  if (group_.rank() != 0) return;
  epochs_.push_back(record);
  if (!recorder_) return;
  recorder_->add(record);
  // So that whoever reads the folder knows how far the script has come, however it ends.
  recorder_->finish("running");
}

void Plugin::finish(const std::string& status) {
  if (recorder_) recorder_->finish(status);
}

std::vector<at::Tensor> Plugin::own_momentum() {
  std::vector<at::Tensor> tensors;
  if (!traits_of(engine_.levels()[0]).momentum) return tensors;  // In all levels or in none.
  engine_.settle();
  for (std::size_t i = 0; i < engine_.tensors(); ++i)
    if (engine_.compresses(i)) tensors.push_back(model_.parameters[i].second);
  return tensors;
}

EpochStats Plugin::totals() {
  EpochStats sum = ended_;
  sum += engine_.epoch_stats();
  return sum;
}

void Plugin::save_state(const StateWriter& state) {
  engine_.save_state(state.within("engine"));
  const Traffic& traffic = ended_.traffic;
  const StateWriter own = state.within("plugin");
  std::vector<std::int64_t> counts = {ended_.steps, ended_.dropped_steps};
  for (const std::uint64_t count :
       {traffic.payload_bytes, traffic.wire_bytes, traffic.paper_floats, traffic.entries, traffic.saturated,
        traffic.control_bytes, sent_bytes(), sent_recorded_})
    counts.push_back(static_cast<std::int64_t>(count));
  own.put("counts", counts);
  own.put("rate", rate_);
  Json epochs = Json::array();
  for (const EpochRecord& record : epochs_) epochs.push_back(to_json(record));
  own.put("epochs", epochs.dump());
}

void Plugin::load_state(const State& given, Residuals residuals, std::string refused) {
  if (begun_) throw UsageError("load_state_dict() after the first step, expected it before");
  const StateReader state(given), own = state.within("plugin");
  std::vector<std::int64_t> counts;
  double rate = rate_;
  std::vector<EpochRecord> epochs;
  if (refused.empty()) try {
      own.get("counts", counts, 10);
      own.get("rate", rate);
      std::string text;
      own.get("epochs", text);
      if (group_.rank() == 0)
        for (const Json& record : parse_json(text, "state: its epochs"))
          from_json(record, epochs.emplace_back());
    } catch (const std::exception& error) {
      refused = error.what();
    }
  const std::string call = "load_state_dict(): ";
  stop_together(refused.empty() ? nullptr : std::make_exception_ptr(UsageError(call + refused)),
                call + "another rank was given what state_dict() did not give, and says why");
  try {
    engine_.load_state(state.within("engine"), residuals);
  } catch (const StateOfAnotherRank& error) {
    throw UsageError(
        call + error.what() +
        ". Residuals differ from rank to rank: save one file a rank, torch.save(state.state_dict(), "
        "f\"accordion-{dist.get_rank()}.pt\"), and load it where it came from; or go on without them: "
        "load_state_dict(..., residuals=\"drop\")");
  } catch (const StateRefused& error) {
    throw UsageError(call + error.what());
  }
  const auto count = [&](std::size_t i) { return static_cast<std::uint64_t>(counts[i]); };
  ended_ = {.steps = counts[0],
            .dropped_steps = counts[1],
            .traffic = {.payload_bytes = count(2),
                        .wire_bytes = count(3),
                        .paper_floats = count(4),
                        .entries = count(5),
                        .saturated = count(6),
                        .control_bytes = count(7)}};
  sent_before_ = count(8) - engine_.sent_bytes();
  sent_recorded_ = count(9);
  rate_ = rate;
  epochs_ = std::move(epochs);
  loaded_ = true;
}

}  // namespace accordion
