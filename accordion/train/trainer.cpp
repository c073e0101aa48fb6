#include "accordion/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "accordion/base/error.h"
#include "accordion/base/hash.h"
#include "accordion/compress/codecs.h"
#include "accordion/engine/engine.h"
#include "accordion/models/zoo.h"
#include "accordion/report/step_chart.h"
#include "accordion/run/replay.h"
#include "accordion/run/shapes.h"
#include "accordion/train/evaluate.h"
#include "accordion/train/replicas.h"
#include "accordion/train/tensor_arrays.h"

namespace accordion {
namespace {

std::shared_ptr<Network> seeded_model(const TrainOptions& options, const InputShape& input, int rank) {
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  auto model = make_model(options.model, input);
  if (!options.initial.empty()) load_model(*model, options.initial);
  // From here on ranks draw differently: dropout shall not drop the same units everywhere.
  torch::manual_seed(
      Hash().add(static_cast<std::uint64_t>(options.seed)).add(static_cast<std::uint64_t>(rank)).value());
  return model;
}

// A twentieth of the training samples, the same in every epoch.
std::vector<std::uint32_t> diagnosed_samples(const Images& images, const TrainOptions& options) {
  std::vector<std::uint32_t> samples = EpochOrder(images.size(), static_cast<std::size_t>(options.samples),
                                                  static_cast<std::uint64_t>(options.seed))
                                           .epoch(0);
  samples.resize(std::max<std::size_t>(1, samples.size() / 20));
  return samples;
}

}  // namespace

Trainer::Trainer(const TrainOptions& options, const Dataset& data, Group& group,
                 const LoadedCheckpoint* checkpoint, int check_every)
    : options_(options),
      data_(data),
      control_(group.control()),
      model_(seeded_model(options, input_shape(data), control_.rank())),
      ddp_(model_, group,
           {.gradient_as_bucket_view = true,
            .control = options.control,
            .guard = guard_mode(options.guard),
            .profile = {options.profile, options.model, options.batch},
            .replayed_guard =
                options.replay.empty() ? std::vector<GuardEvent>() : recorded_guard(options.replay),
            .communication = {.on_non_finite = non_finite(options.non_finite),
                              .deferred = !options.overlap,
                              .clip_norm = options.clip},
            .learning_rate = learning_rate(options, 0),
            .seed = static_cast<std::uint64_t>(options.seed),
            .record_norms = true},
           options.replay.empty()
               ? nullptr
               : replayed_controller(options.replay, names_of(exchanged_tensors(*model_)))),
      engine_(ddp_.engine()),
      names_(names_of(exchanged_tensors(*model_))),
      check_every_(check_every),
      late_(static_cast<std::size_t>(control_.size())),
      feed_(make_feed(data, options, control_.rank(), control_.size())) {
  prepare_optimizer();
  if (options.diagnose == "hessian") {
    const auto& images = std::get<ImageSet>(data.contents);
    hessian_.emplace(ddp_.module(), images, diagnosed_samples(images.train, options), options.batch, control_,
                     static_cast<std::uint64_t>(options.seed));
  }
  if (checkpoint)
    load(*checkpoint);
  else
    queue_next_epoch();
}

// A codec may have applied momentum to what it sends; the optimizer keeps its own for the rest.
void Trainer::prepare_optimizer() {
  const auto momentum = traits_of(engine_.levels()[0]).momentum;  // In all levels or in none.
  std::vector<torch::Tensor> tensors;
  std::unordered_set<const c10::TensorImpl*> has_momentum;
  for (std::size_t i = 0; momentum && i < ddp_.parameters().size(); ++i)
    if (engine_.compresses(i)) {
      tensors.push_back(ddp_.parameters()[i]);
      has_momentum.insert(tensors.back().unsafeGetTensorImpl());
    }
  if (momentum)
    decay_.emplace(std::move(tensors), options_.weight_decay, momentum->factor, momentum->nesterov);
  optimizer_ = make_optimizer(options_, ddp_.module(), has_momentum);
}

void Trainer::queue_epoch(std::int64_t batch, std::string reason) {
  const std::int64_t unit = static_cast<std::int64_t>(options_.batch) * control_.size();
  if (batch < unit || batch % unit != 0 || batch / unit > std::numeric_limits<int>::max())
    throw Error("a batch of " + std::to_string(batch) +
                " samples in all, expected a multiple of batch x workers, " + std::to_string(unit));
  global_batch_ = batch;
  batch_reason_ = std::move(reason);
  steps_ = feed_->queue(position_.epoch, static_cast<int>(global_batch_ / unit), position_.epoch_step);
}

// With the batch that the controller has chosen for it.
void Trainer::queue_next_epoch() {
  const std::int64_t unit = static_cast<std::int64_t>(options_.batch) * control_.size();
  queue_epoch(engine_.batch() ? engine_.batch() : unit * options_.accumulate, engine_.batch_reason());
}

std::int64_t Trainer::samples_from(std::int64_t first) const {
  return std::accumulate(steps_.begin() + first, steps_.end(), std::int64_t{0},
                         [](std::int64_t sum, const Step& step) { return sum + step.global_samples; });
}

std::optional<EpochRecord> Trainer::run_epoch(const TrainerCalls& calls) {
  began_ = together_ = StepClock::now();
  const int epoch = position_.epoch;
  const auto steps = static_cast<std::int64_t>(steps_.size());
  const bool last_epoch = epoch + 1 == options_.epochs;
  const auto samples = static_cast<double>(samples_from(0));
  const bool skips = options_.non_finite == "skip";

  if (position_.epoch_step == 0) ddp_.module().forget();
  while (position_.epoch_step < steps) {
    const std::int64_t s = position_.epoch_step;
    const Step& step = steps_[static_cast<std::size_t>(s)];
    set_learning_rate(*optimizer_, rate(epoch, s));
    const double loss = run_step(step);
    // What a model carries on from such a batch would spoil the rest of the epoch.
    if (!std::isfinite(loss)) ddp_.module().forget();
    if (std::isfinite(loss) || !skips) loss_sum_ += loss * static_cast<double>(step.local_samples);
    const Verdict verdict = agree(calls, std::isfinite(loss) || skips);
    engine_.end_step(schedule_rate(epoch, s + 1), last_epoch && s + 1 == steps);
    ++position_.epoch_step, ++position_.step;
    if (check_every_ > 0 && position_.step % check_every_ == 0)
      require_same_replicas(control_, names_, ddp_.parameters(),
                            "after step " + std::to_string(s + 1) + " of epoch " + std::to_string(epoch));
    calls.on_step({epoch, s + 1, steps, step.global_samples, loss});
    checkpoint_is_due_ = verdict.checkpoint;
    if (verdict.stop || (verdict.checkpoint && s + 1 < steps)) calls.write_checkpoint();
    if (verdict.stop) return std::nullopt;
  }
  EpochRecord record = to_record(engine_.end_epoch(schedule_rate(epoch + 1, 0), last_epoch));
  describe_control(record);
  describe_waiting(record);
  record.seconds = seconds_ + std::chrono::duration<double>(StepClock::now() - began_).count();
  record.input_wait_seconds = feed_->wait_seconds();
  // Batches of the next epoch are made while this one is evaluated.
  ++position_.epoch;
  position_.epoch_step = 0;
  if (!last_epoch) queue_next_epoch();

  control_.sum(std::span(&loss_sum_, 1));
  require_same_replicas(control_, names_, ddp_.parameters(), "after epoch " + std::to_string(epoch));
  ddp_.sync_buffers();
  const Evaluation test = evaluate(ddp_.module(), data_, options_.bptt, control_);
  if (hessian_) record.hessian_eigenvalue = hessian_->estimate().value;
  record.train_loss = std::exchange(loss_sum_, 0) / samples;
  record.test_loss = test.loss;
  record.test_accuracy = test.accuracy;
  record.test_perplexity = test.perplexity;
  const std::uint64_t sent_bytes = engine_.sent_bytes();
  record.sent_bytes = sent_bytes - std::exchange(sent_bytes_, sent_bytes);
  seconds_ = 0;
  return record;
}

std::string Trainer::explain_step() {
  const auto explained = engine_.explain_step();
  return explained ? step_chart(explained->measured, explained->predicted)
                   : "No step was seen whole: two in a row are needed.\n";
}

// Of the epoch that has ended, before the next one is queued.
void Trainer::describe_control(EpochRecord& record) const {
  record.lr = rate(record.epoch, 0);
  record.global_batch = global_batch_;
  if (!options_.control.controls_batch()) return;
  record.schedule_lr = schedule_rate(record.epoch, 0);
  record.batch_reason = batch_reason_;
}

double Trainer::schedule_rate(int epoch, std::int64_t step) const {
  const auto steps = static_cast<double>(steps_.size());
  return learning_rate(options_, epoch + static_cast<double>(step) / steps);
}

// A larger batch takes larger steps: the schedule is written for the mild one.
double Trainer::rate(int epoch, std::int64_t step) const {
  const std::int64_t mild = options_.control.batch_mild;
  const double scale = mild > 0 ? static_cast<double>(global_batch_) / static_cast<double>(mild) : 1;
  return scale * schedule_rate(epoch, step);
}

// Returns the mean loss over this rank's samples.
double Trainer::run_step(const Step& step) {
  ddp_.zero_grad();
  ddp_.set_batch(step.local_samples, step.global_samples);
  double mean_loss = 0;
  for (int micro = 0; micro < step.micro_batches; ++micro) {
    const Example batch = feed_->next();
    // Weighted so that the gradients of a step's micro-batches add up to the mean over the rank's samples. A
    // rank without samples has a stand-in, whose gradient set_batch weighs with nothing.
    const double weight = step.local_samples == 0 ? 1
                                                  : static_cast<double>(batch.targets.numel()) /
                                                        static_cast<double>(step.local_samples);
    std::optional<DataParallel::NoSync> accumulate_only;
    if (micro + 1 < step.micro_batches) accumulate_only.emplace(ddp_);
    const std::uint64_t sent_before = engine_.sent_bytes();
    const torch::Tensor scores = ddp_.forward(batch.input);
    // The order of buckets, once a process: a run that was never stopped does not send it again.
    if (buckets_known_) sent_bytes_ += engine_.sent_bytes() - sent_before;
    const torch::Tensor loss = torch::nn::functional::cross_entropy(scores, batch.targets) * weight;
    ddp_.backward(loss);
    mean_loss += loss.item<double>();
  }
  if (decay_) decay_->add_to_gradients();
  optimizer_->step();
  return mean_loss;
}

// One small collective a step, so that all ranks leave the loop after the same step, and know whom they waited for.
Trainer::Verdict Trainer::agree(const TrainerCalls& calls, bool finite) {
  struct Word {
    float busy_seconds;  // Since all were together, until all of this rank's gradients were there.
    std::uint8_t stops, checkpoint, not_finite, none;
  };
  const bool last = position_.epoch_step + 1 == static_cast<std::int64_t>(steps_.size());
  const Word mine{std::chrono::duration<float>(engine_.last_ready() - together_).count(),
                  calls.stop_requested(), control_.rank() == 0 && calls.checkpoint_due(last), !finite, 0};
  std::vector<Word> all(late_.size());
  control_.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  together_ = StepClock::now();

  Verdict verdict{.checkpoint = all[0].checkpoint != 0};
  std::size_t slowest = 0;
  float second = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    verdict.stop = verdict.stop || all[r].stops;
    if (all[r].not_finite)
      throw Error("rank " + std::to_string(r) + ": the loss is no longer finite at epoch " +
                  std::to_string(position_.epoch) + ", step " + std::to_string(position_.epoch_step) +
                  " (learning rate " + number_text(rate(position_.epoch, position_.epoch_step)) +
                  "); a lower --lr or a warm-up may help");
    if (all[r].busy_seconds > all[slowest].busy_seconds) slowest = r;
  }
  for (std::size_t r = 0; r < all.size(); ++r)
    if (r != slowest) second = std::max(second, all[r].busy_seconds);
  late_[slowest] += std::max(0.0f, all[slowest].busy_seconds - second);
  return verdict;
}

// What the epoch would have saved had the slowest rank of each step been as fast as the next one.
void Trainer::describe_waiting(EpochRecord& record) {
  const auto slowest = std::max_element(late_.begin(), late_.end());
  if (late_.size() > 1) {
    record.waited_for_rank = static_cast<int>(slowest - late_.begin());
    record.waited_seconds = *slowest;
  }
  std::fill(late_.begin(), late_.end(), 0.0);
}

}  // namespace accordion
