// Everything that the rest of a run depends on, into a checkpoint and out of one.
#include "accordion/base/error.h"
#include "accordion/engine/engine.h"
#include "accordion/engine/redistribute.h"
#include "accordion/train/tensor_arrays.h"
#include "accordion/train/trainer.h"

namespace accordion {
namespace {

// The generator of a rank, which dropout draws from.
at::Generator generator() {
  return at::detail::getDefaultCPUGenerator();
}

std::string remembered_name(std::size_t i) {
  return "remembered/" + std::to_string(i);
}

std::string optimizer_prefix(const std::string& name) {
  return "optimizer/" + name + "/";
}

}  // namespace

std::string Trainer::write_checkpoint(Checkpoints& checkpoints) {
  const auto begin = StepClock::now();
  const std::uint64_t sent_before = engine_.sent_bytes();
  State state;
  const StateWriter writer(state);
  engine_.save_state(writer.within("engine"));
  const StateWriter trainer = writer.within("trainer");
  trainer.put("batch", global_batch_);
  trainer.put("batch_reason", batch_reason_);
  trainer.put("loss_sum", loss_sum_);
  trainer.put(
      "seconds",
      seconds_ + (position_.epoch_step > 0 ? std::chrono::duration<double>(begin - began_).count() : 0));
  trainer.put("late", late_);
  trainer.put("sent_bytes", sent_before - sent_bytes_);

  TensorArrays part, common;
  add_state(state, "state", part.arrays());
  part.add("random", generator().get_state());
  const std::vector<torch::Tensor> remembered = ddp_.module().remembered();
  for (std::size_t i = 0; i < remembered.size(); ++i) part.add(remembered_name(i), remembered[i]);
  if (control_.rank() == 0) {
    common.add_module("model/", ddp_.module());
    for (std::size_t i = 0; i < names_.size(); ++i)
      for (const auto& [what, tensor] : kept_of(*optimizer_, ddp_.parameters()[i]))
        common.add(optimizer_prefix(names_[i]) + what, tensor);
    for (std::size_t i = 0; decay_ && i < decay_->velocity().size(); ++i)
      common.add("decay/" + std::to_string(i), decay_->velocity()[i]);
    if (hessian_)
      common.add("hessian", torch::from_blob(hessian_->vector().data(),
                                             {static_cast<std::int64_t>(hessian_->vector().size())}));
  }
  const std::string failure = checkpoints.write(position_, common.arrays(), part.arrays());
  // Neither its messages nor its time are the epoch's: a run that wrote none would not have them.
  sent_bytes_ += engine_.sent_bytes() - sent_before;
  began_ += StepClock::now() - begin;
  together_ = StepClock::now();
  return failure;
}

// Of a group of another size: residuals are handed on, what all have in common comes from rank 0.
State Trainer::regrouped(const LoadedCheckpoint& checkpoint, const std::vector<State>& states) const {
  const auto engine_part = [](const State& state) { return StateReader(state).within("engine").all(); };
  State first = state_of(checkpoint.first.value().arrays(), "state");
  std::vector<State> taken_over;
  double loss_sum = 0;
  for (const State& state : states) {
    taken_over.push_back(engine_part(state));
    double loss = 0;
    StateReader(state).get("trainer/loss_sum", loss);
    loss_sum += loss;
  }
  State state = StateReader(first).within("trainer").all();
  State all;
  for (auto& [name, value] : state) all["trainer/" + name] = std::move(value);
  for (auto& [name, value] : redistributed(engine_part(first), taken_over, control_.rank(), control_.size()))
    all["engine/" + name] = value;
  all["trainer/loss_sum"] = std::vector{loss_sum};
  return all;
}

void Trainer::load(const LoadedCheckpoint& checkpoint) {
  const ArrayFile& common = checkpoint.common;
  position_ = checkpoint.manifest.position;
  buckets_known_ = position_.step >= 2;
  copy_into(ddp_.module(), common, "model/");
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const std::string prefix = optimizer_prefix(names_[i]);
    KeptTensors kept;
    for (auto at = common.arrays().lower_bound(prefix);
         at != common.arrays().end() && at->first.starts_with(prefix); ++at)
      kept.emplace_back(at->first.substr(prefix.size()), tensor_of(at->second, at->first));
    keep(*optimizer_, ddp_.parameters()[i], kept);
  }
  for (std::size_t i = 0; decay_ && i < decay_->velocity().size(); ++i)
    copy_into(decay_->velocity()[i], common, "decay/" + std::to_string(i));
  if (hessian_)
    copy_into(
        torch::from_blob(hessian_->vector().data(), {static_cast<std::int64_t>(hessian_->vector().size())}),
        common, "hessian");

  std::vector<State> states;
  for (const ArrayFile& part : checkpoint.parts) states.push_back(state_of(part.arrays(), "state"));
  const bool same_group = checkpoint.manifest.workers == control_.size();
  State state = same_group ? std::move(states.at(0)) : regrouped(checkpoint, states);
  const StateReader reader(state);
  engine_.load_state(reader.within("engine"));
  const StateReader trainer = reader.within("trainer");
  std::int64_t batch = 0;
  std::string reason;
  trainer.get("batch", batch);
  trainer.get("batch_reason", reason);
  trainer.get("loss_sum", loss_sum_);
  trainer.get("seconds", seconds_);
  std::uint64_t sent_bytes = 0;
  trainer.get("sent_bytes", sent_bytes);
  if (same_group) {
    trainer.get("late", late_, late_.size());
    generator().set_state(tensor_of(checkpoint.parts[0].at("random"), "random"));
    std::vector<torch::Tensor> remembered;
    for (std::size_t i = 0; checkpoint.parts[0].arrays().count(remembered_name(i)); ++i)
      remembered.push_back(tensor_of(checkpoint.parts[0].at(remembered_name(i)), remembered_name(i)));
    ddp_.module().remember(remembered);
  }
  queue_epoch(batch, reason);
  sent_bytes_ = engine_.sent_bytes() - sent_bytes;
}

}  // namespace accordion
