#include "accordion/exchange/layer.h"

#include <map>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/kernels/dense.h"

namespace accordion {
namespace {

struct SaveState final : StateVisitor {
  std::map<std::string, std::vector<float>, std::less<>> pieces;
  void visit(std::string_view name, std::vector<float>& values) override { pieces.emplace(name, values); }
};

struct LoadState final : StateVisitor {
  explicit LoadState(const SaveState& saved) : saved(saved) {}
  const SaveState& saved;
  void visit(std::string_view name, std::vector<float>& values) override {
    if (const auto found = saved.pieces.find(name); found != saved.pieces.end()) values = found->second;
  }
};

}  // namespace

void Layer::set_level(int level, const CodecOptions& codec, int rank, int world, const Routing& routing) {
  SaveState state;
  if (compressor_) {
    if (!residual_.empty()) compressor_->settle(rank, residual_);
    if (!published_) compressor_->visit_state(state);
  }
  level_ = level;
  codec_ = static_cast<std::uint8_t>(codec.index());
  compressor_ = make_compressor(codec, info_.shape, world, routing);
  if (published_ && !keeps_residual()) residual_ = {};
  if (!compressor_) return;
  LoadState load(state);
  compressor_->visit_state(load);
}

Feedback Layer::feedback(std::span<const float> gradient) {
  if (!keeps_residual()) return {gradient, {}, {}};
  if (residual_.empty()) residual_.resize(gradient.size());
  next_.resize(gradient.size());
  pending_ = true;
  return {gradient, residual_, next_};
}

void Layer::flush_into(std::span<float> gradient) {
  if (residual_.empty()) return;
  kernels::add(residual_, gradient);
  flushed_ = true;
}

void Layer::visit_state(StateVisitor& visitor) {
  visitor.visit("residual", residual_);
  if (!residual_.empty() && residual_.size() != info_.shape.count())
    throw Error(info_.name + ": a residual of " + std::to_string(residual_.size()) + " values, expected " +
                std::to_string(info_.shape.count()));
  if (compressor_) compressor_->visit_state(visitor);
}

void Layer::commit(bool finite) {
  if (compressor_) compressor_->commit(finite);
  if (finite && std::exchange(pending_, false)) std::swap(residual_, next_);
  if (finite && std::exchange(flushed_, false)) residual_ = {};
  pending_ = flushed_ = false;
}

}  // namespace accordion
