#include "accordion/train/trainer.h"

#include <chrono>
#include <cmath>
#include <numeric>

#include "accordion/base/error.h"
#include "accordion/base/hash.h"
#include "accordion/compress/codecs.h"
#include "accordion/exchange/agreement.h"
#include "accordion/models/zoo.h"
#include "accordion/report/step_chart.h"
#include "accordion/run/replay.h"
#include "accordion/run/shapes.h"
#include "accordion/train/evaluate.h"

namespace accordion {
namespace {

std::shared_ptr<Network> seeded_model(const TrainOptions& options, const InputShape& input, int rank) {
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  auto model = make_model(options.model, input);
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

Trainer::Trainer(const TrainOptions& options, const Dataset& data, Group& group)
    : options_(options),
      data_(data),
      control_(group.control()),
      model_(seeded_model(options, input_shape(data), control_.rank())),
      ddp_(model_, group,
           {.gradient_as_bucket_view = true,
            .control = options.control,
            .guard = guard_mode(options.guard),
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
      feed_(make_feed(data, options, control_.rank(), control_.size())) {
  prepare_optimizer();
  queue_epoch(0);
  if (options.diagnose == "hessian") {
    const auto& images = std::get<ImageSet>(data.contents);
    hessian_.emplace(ddp_.module(), images, diagnosed_samples(images.train, options), options.batch, control_,
                     static_cast<std::uint64_t>(options.seed));
  }
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

// With the batch that the controller has chosen for it.
void Trainer::queue_epoch(int epoch) {
  const std::int64_t unit = static_cast<std::int64_t>(options_.batch) * control_.size();
  global_batch_ = engine_.batch() ? engine_.batch() : unit * options_.accumulate;
  batch_reason_ = engine_.batch_reason();
  steps_ = feed_->queue(epoch, static_cast<int>(global_batch_ / unit));
}

std::int64_t Trainer::epoch_samples() const {
  return std::accumulate(steps_.begin(), steps_.end(), std::int64_t{0},
                         [](std::int64_t sum, const Step& step) { return sum + step.global_samples; });
}

std::optional<EpochRecord> Trainer::run_epoch(int epoch, const std::function<bool()>& stop_requested,
                                              const std::function<void(const StepProgress&)>& on_step) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto steps = static_cast<std::int64_t>(steps_.size());
  const bool last_epoch = epoch + 1 == options_.epochs;

  const auto samples = static_cast<double>(epoch_samples());

  ddp_.module().forget();
  double loss_sum = 0;
  for (std::int64_t s = 0; s < steps; ++s) {
    const Step& step = steps_[static_cast<std::size_t>(s)];
    set_learning_rate(*optimizer_, rate(epoch, s));
    const double loss = run_step(step);
    const bool skips = options_.non_finite == "skip";
    // What a model carries on from such a batch would spoil the rest of the epoch.
    if (!std::isfinite(loss)) ddp_.module().forget();
    if (std::isfinite(loss) || !skips) loss_sum += loss * static_cast<double>(step.local_samples);
    if (agree_to_stop(stop_requested(), std::isfinite(loss) || skips, epoch, s)) return std::nullopt;
    engine_.end_step(schedule_rate(epoch, s + 1), last_epoch && s + 1 == steps);
    on_step({epoch, s + 1, steps, step.global_samples, loss});
  }
  EpochRecord record = to_record(engine_.end_epoch(schedule_rate(epoch + 1, 0), last_epoch));
  describe_control(record);
  record.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  record.input_wait_seconds = feed_->wait_seconds();
  // Batches of the next epoch are made while this one is evaluated.
  if (!last_epoch) queue_epoch(epoch + 1);

  control_.sum(std::span(&loss_sum, 1));
  require_same_weights(epoch);
  ddp_.sync_buffers();
  const Evaluation test = evaluate(ddp_.module(), data_, options_.bptt, control_);
  if (hessian_) record.hessian_eigenvalue = hessian_->estimate().value;
  record.train_loss = loss_sum / samples;
  record.test_loss = test.loss;
  record.test_accuracy = test.accuracy;
  record.test_perplexity = test.perplexity;
  const std::uint64_t sent_bytes = engine_.sent_bytes();
  record.sent_bytes = sent_bytes - std::exchange(sent_bytes_, sent_bytes);
  return record;
}

std::string Trainer::explain_step() {
  const auto explained = engine_.explain_step();
  return explained ? step_chart(explained->measured, explained->predicted)
                   : "No step was seen whole: two in a row are needed.\n";
}

// Replicas drift apart only by a mistake in what was decoded, which nothing else would show.
void Trainer::require_same_weights(int epoch) {
  Hash hash;
  for (const torch::Tensor& tensor : ddp_.parameters()) {
    const torch::Tensor dense = tensor.detach().contiguous();
    hash.add(std::as_bytes(std::span(static_cast<const char*>(dense.data_ptr()), dense.nbytes())));
  }
  const Claim claim{"weights after epoch " + std::to_string(epoch), "hash " + std::to_string(hash.value())};
  require_agreement(control_, {&claim, 1});
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
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(ddp_.forward(batch.input), batch.targets) * weight;
    ddp_.backward(loss);
    mean_loss += loss.item<double>();
  }
  if (decay_) decay_->add_to_gradients();
  optimizer_->step();
  return mean_loss;
}

// One small collective a step, so that all ranks leave the loop after the same step.
bool Trainer::agree_to_stop(bool stop_requested, bool finite, int epoch, std::int64_t step) {
  std::int32_t flags[] = {stop_requested, finite ? 0 : control_.rank() + 1};
  control_.max(std::span<std::int32_t>(flags));
  if (flags[1] != 0)
    throw Error("rank " + std::to_string(flags[1] - 1) + ": the loss is no longer finite at epoch " +
                std::to_string(epoch) + ", step " + std::to_string(step) + " (learning rate " +
                number_text(rate(epoch, step)) + "); a lower --lr or a warm-up may help");
  return flags[0] != 0;
}

}  // namespace accordion
