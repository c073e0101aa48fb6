#include "accordion/exchange/layer.h"

#include <utility>

#include "accordion/base/error.h"
#include "accordion/kernels/dense.h"

namespace accordion {

void Layer::set_level(int level, const CodecOptions& codec, int rank, int world, const Routing& routing) {
  State state = level_ == kDense ? std::move(waiting_) : State();
  waiting_ = {};
  if (compressor_) {
    if (!residual_.empty()) compressor_->settle(rank, residual_);
    if (!published_) compressor_->save_state(StateWriter(state));
  }
  level_ = level;
  codec_ = frame_id(codec);
  compressor_ = make_compressor(codec, info_.shape, world, routing);
  if (published_ && !keeps_residual()) residual_ = {};
  if (compressor_) compressor_->load_state(StateReader(state, StateReader::Missing::kKeep));
  if (level == kDense) waiting_ = std::move(state);
}

Feedback Layer::feedback(std::span<const float> gradient) {
  if (!keeps_residual()) return {gradient, {}, {}};
  if (residual_.empty()) residual_.resize(gradient.size());
  next_.resize(gradient.size());
  pending_ = true;
  return {gradient, residual_, next_};
}

void Layer::flush_into(std::span<float> gradient) {
  if (residual_.empty() || plain_) return;
  kernels::add(residual_, gradient);
  flushed_ = true;
}

void Layer::save_state(const StateWriter& state) const {
  state.put("residual", residual_);
  if (compressor_) compressor_->save_state(state);
  for (const auto& [name, value] : waiting_) state.within("waiting").put(name, value);
}

void Layer::load_state(const StateReader& state) {
  state.get("residual", residual_);
  if (!residual_.empty() && residual_.size() != info_.shape.count())
    throw Error(info_.name + ": a residual of " + std::to_string(residual_.size()) + " values, expected " +
                std::to_string(info_.shape.count()));
  if (compressor_) compressor_->load_state(state);
  waiting_ = state.within("waiting").all();
}

void Layer::forget_own() {
  residual_ = {};
  waiting_ = {};
  if (compressor_) compressor_->forget_own();
}

void Layer::commit(bool finite) {
  if (compressor_) compressor_->commit(finite);
  if (finite && std::exchange(pending_, false)) std::swap(residual_, next_);
  if (finite && std::exchange(flushed_, false)) residual_ = {};
  pending_ = flushed_ = false;
}

}  // namespace accordion
