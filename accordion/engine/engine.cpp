#include "accordion/engine/engine.h"

#include <cmath>
#include <sstream>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/base/options.h"
#include "accordion/exchange/agreement.h"

namespace accordion {
namespace {

// Everything that the size and order of messages follow from, before a rank may refuse any of it alone.
EngineOptions require_same(Group& group, const std::vector<TensorInfo>& tensors,
                           const EngineOptions& options) {
  std::ostringstream names, settings;
  for (const TensorInfo& tensor : tensors) {
    names << tensor.name << " [";
    for (std::size_t i = 0; i < tensor.shape.dims.size(); ++i)
      names << (i ? ", " : "") << tensor.shape.dims[i];
    names << "]\n";
  }
  settings << "seed = " << options.seed << "\ndeferred = " << options.communication.deferred
           << "\nclip_norm = " << options.communication.clip_norm
           << "\non_non_finite = " << static_cast<int>(options.communication.on_non_finite)
           << "\nmin_count = " << options.routing.min_count << "\nmin_rate = " << options.routing.min_rate
           << "\npublished = " << options.routing.published << "\nscaled = " << options.scaled << '\n';
  const Json control = to_json(options.control);
  for (const auto& [key, value] : control.items()) settings << key << " = " << value.dump() << '\n';
  // Last: a caller's default follows from the codec, which is what then differs first.
  settings << "guard = " << kGuardModes[static_cast<std::size_t>(options.guard)] << '\n';
  const Claim claims[] = {{"tensors", names.str()}, {"settings", settings.str()}};
  require_agreement(group.control(), claims);
  check_control("control", options.control);
  check_guard("control", options.guard, options.control,
              options.profile.given() || !options.replayed_guard.empty());
  return options;
}

// Levels that later steps may get are refused now, if so many ranks cannot use them.
std::vector<CodecOptions> levels_for(const ControlOptions& control, const std::vector<TensorInfo>& tensors,
                                     int ranks) {
  std::vector<CodecOptions> levels = control_levels("control", control, parameter_count(tensors));
  check_ranks(levels, ranks);
  return levels;
}

// Only the rank that decides watches.
ExchangeOptions exchange_options(const EngineOptions& options, const std::vector<CodecOptions>& levels,
                                 const Controller& controller, int rank) {
  ExchangeOptions exchange{
      .levels = levels,
      .routing = options.routing,
      .seed = options.seed,
      .published = options.control.published(),
      .threads = options.threads,
      .watch_dense = options.scaled || options.communication.on_non_finite != NonFinite::kPropagate};
  if (rank != 0) return exchange;
  const Needs needs = controller.needs();
  exchange.track = {.norms = options.record_norms || needs.norms,
                    .squares = needs.squares,
                    .trials = needs.trials,
                    .low_rank = options.control.low_rank(),
                    .aggregated = options.control.norms == "aggregated"};
  return exchange;
}

// A codec may limit the norm of the whole model's gradient, which it does not see itself. Not where nothing is compressed.
CommunicationOptions with_clipping(CommunicationOptions communication,
                                   const std::vector<CodecOptions>& levels, int ranks, bool compresses) {
  if (!compresses) return communication;
  for (const CodecOptions& level : levels)
    if (const double clip = traits_of(level).model_clip; clip > 0) {
      const double limit = clip / std::sqrt(ranks);
      communication.clip_norm =
          communication.clip_norm > 0 ? std::min(communication.clip_norm, limit) : limit;
    }
  return communication;
}

std::size_t parameters_in(const Exchange& exchange) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < exchange.tensors(); ++i) count += exchange.tensor(i).shape.count();
  return count;
}

std::optional<Guard> make_guard(const EngineOptions& options, const std::vector<CodecOptions>& levels,
                                Exchange& exchange, Communicator& gradients) {
  if (!options.replayed_guard.empty()) return Guard(options.replayed_guard, levels, exchange, gradients);
  if (options.guard == GuardMode::kNone) return std::nullopt;
  const perf::Goal goal = options.guard == GuardMode::kFastest ? perf::Goal::kFastest : perf::Goal::kHarmless;
  if (!traits_of(levels[0]).momentum) return Guard(goal, levels, exchange, gradients);
  return Guard(decide_by_profile(gradients, options.profile, levels, parameters_in(exchange), goal), levels,
               exchange, gradients);
}

}  // namespace

Engine::Engine(Group& group, std::vector<TensorInfo> tensors, EngineOptions options,
               std::unique_ptr<Controller> controller)
    : group_(group),
      options_(require_same(group, tensors, options)),
      levels_(levels_for(options_.control, tensors, group.size())),
      // On every rank, so that all of them refuse what one refuses; rank 0's decides.
      controller_(controller
                      ? std::move(controller)
                      : make_controller(options_.control, tensors.size(), static_cast<int>(levels_.size()))),
      exchange_(group_.gradients(), std::move(tensors),
                exchange_options(options_, levels_, *controller_, group_.rank())),
      guard_(make_guard(options_, levels_, exchange_, group_.gradients())),
      thread_(
          exchange_,
          with_clipping(options_.communication, levels_, group_.size(), !guard_ || !guard_->always_dense()),
          [this](const StepTrace& trace) { end_step(trace); }),
      steering_(options_.control.window, levels_, group_.rank() == 0 ? std::move(controller_) : nullptr,
                exchange_, guard_ ? &*guard_ : nullptr, group_.control(), options_.learning_rate) {}

void Engine::end_step(const StepTrace& trace) {
  std::vector<int> levels;
  for (std::size_t i = 0; i < exchange_.tensors(); ++i)
    levels.push_back(exchange_.compresses(i) ? exchange_.level(i) : kDense);
  recent_.add(trace, std::move(levels));
  splits_.add(trace);
  if (see_step_) see_step_(trace);
  if (guard_) guard_->end_step(trace);
}

std::optional<ExplainedStep> Engine::explain_step() {
  settle();
  return recent_.explain(group_.control(), guard_ ? &guard_->costs() : nullptr, exchange_);
}

void Engine::set_batch(std::int64_t local_samples, std::int64_t global_samples) {
  if (local_samples < 0 || global_samples < 1 || local_samples > global_samples)
    throw UsageError("set_batch: " + std::to_string(local_samples) + " of " + std::to_string(global_samples) +
                     " samples, expected 0 <= local <= global and at least 1 global");
  exchange_.set_weight(static_cast<double>(local_samples) * group_.size() /
                       static_cast<double>(global_samples));
}

void Engine::set_batch(std::int64_t local_samples) {
  std::int64_t global_samples = local_samples;
  group_.control().sum(std::span(&global_samples, 1));
  set_batch(local_samples, global_samples);
}

void Engine::set_scale(double scale) {
  if (!(scale > 0) || !std::isfinite(scale))
    throw UsageError("set_scale: " + number_text(scale) + ", expected a finite number above 0");
  exchange_.set_scale(scale);
}

void Engine::take_over() {
  settle();
  if (hand_over_) hand_over_();
}

void Engine::end_step(double next_learning_rate, bool last) {
  if (options_.control.window == 0) return;
  take_over();
  steering_.end_step(next_learning_rate, last);
}

EpochReport Engine::end_epoch(double next_learning_rate, bool last) {
  take_over();
  thread_.pause();
  if (guard_) guard_->end_epoch();
  EpochReport report{
      .epoch = epoch_, .stats = exchange_.take_epoch_stats(), .overlap = thread_.take_overlap()};
  steering_.end_epoch(next_learning_rate, last);
  report.layers = steering_.layers();
  report.windows = steering_.take_windows();
  report.step_split = splits_.take();
  for (std::size_t i = 0; i < report.layers.size(); ++i)
    report.layers[i].payload_bytes = static_cast<std::int64_t>(report.stats.tensor_bytes[i]);
  if (guard_) {
    report.guard = guard_->take_events();
    report.stats.traffic.control_bytes += guard_->take_control_bytes();
  }
  report.stats.traffic.control_bytes += steering_.take_control_bytes();
  exchange_.set_epoch(++epoch_);
  return report;
}

void Engine::save_state(const StateWriter& state) {
  take_over();
  state.put("rank", group_.rank());
  state.put("ranks", group_.size());
  state.put("epoch", epoch_);
  steering_.save_state(state.within("control"));
  if (guard_) guard_->save_state(state.within("guard"));
  exchange_.save_state(state.within("exchange"));
}

// One rank that refuses alone would leave the others waiting.
void Engine::load_together(const std::function<void()>& load) {
  std::optional<std::string> refused;
  try {
    load();
  } catch (const std::exception& error) {
    refused = error.what();
  }
  std::int8_t stop = refused.has_value();
  group_.control().max(std::span(&stop, 1));
  if (refused) throw StateRefused(*refused);
  if (stop) throw StateRefused("another rank was given what is not a state of its own, and says why");
}

void Engine::load_state(const StateReader& state, Residuals residuals) {
  int rank = 0, ranks = 0;
  load_together([&] {
    state.get("rank", rank);
    state.get("ranks", ranks);
    state.get("epoch", epoch_);
  });
  const bool own = residuals == Residuals::kKeep;
  // What the controller has seen, rank 0 alone has kept.
  std::int8_t wrong = own ? rank != group_.rank() || ranks != group_.size() : group_.rank() == 0 && rank != 0;
  group_.control().max(std::span(&wrong, 1));
  if (wrong)
    throw StateOfAnotherRank("rank " + std::to_string(group_.rank()) + " of " +
                             std::to_string(group_.size()) + " was given the state of rank " +
                             std::to_string(rank) + " of " + std::to_string(ranks) +
                             (own ? ", expected every rank to load its own, in a group of the same size"
                                  : ", expected rank 0's, which has what the controller has seen"));
  exchange_.set_epoch(epoch_);
  load_together([&] { steering_.load_state(state.within("control")); });
  steering_.put_loaded_levels();
  if (guard_)
    load_together([&] {
      try {
        guard_->load_state(state.within("guard"));
      } catch (const std::exception& error) {
        group_.gradients().abandon(error.what());  // Others may be putting its levels in force.
        throw;
      }
    });
  load_together([&] { exchange_.load_state(state.within("exchange"), residuals); });
}

}  // namespace accordion
