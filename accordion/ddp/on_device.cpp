#include "accordion/ddp/on_device.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <future>
#include <memory>
#include <optional>

#include "accordion/ddp/staging.h"

namespace accordion {
namespace {

// Whether a mean is finite, on its way from the device.
struct FiniteFlag {
  std::optional<c10::Event> event = {};
  at::Tensor host = {};

  bool wait() const {
    if (!event) return true;
    wait_for(*event);
    return host.item<bool>();
  }
};

FiniteFlag finite_flag(const at::Tensor& mean) {
  FiniteFlag flag;
  const at::Tensor finite = at::isfinite(mean).all();
  flag.host = host_memory(finite);
  flag.host.copy_(finite, /*non_blocking=*/true);
  flag.event.emplace(mean.device().type());
  flag.event->record(c10::impl::VirtualGuardImpl(mean.device().type()).getStream(mean.device()));
  return flag;
}

}  // namespace

OnDevice::OnDevice(Engine& engine, c10::intrusive_ptr<c10d::ProcessGroup> group)
    : engine_(engine), group_(std::move(group)) {
  engine_.hand_over_first([this] { hand_over(); });
}

// From what all ranks have in common only. Whoever may yet change or inspect all of a step's gradients, or watches their means,
// does so in host memory.
bool OnDevice::takes(const std::vector<Slice>& slices) const {
  const EngineOptions& options = engine_.options();
  if (!group_ || options.communication.on_non_finite != NonFinite::kPropagate ||
      engine_.communication().clip_norm > 0 || options.communication.deferred ||
      options.control.norms == "aggregated")
    return false;
  return std::none_of(slices.begin(), slices.end(), [&](const Slice& slice) {
    const auto tensor = static_cast<std::size_t>(slice.tensor);
    return engine_.compresses(tensor) || engine_.exchange().flushes(tensor);
  });
}

void OnDevice::watch(const at::Tensor& buffer, const std::vector<Slice>& slices) {
  const Tracking& track = engine_.exchange().tracking();
  if (!track.norms || engine_.exchange().weight() == 0) return;
  const double scale = engine_.exchange().scale();
  for (const Slice& slice : slices) {
    at::Tensor gradient =
        buffer.narrow(0, static_cast<std::int64_t>(slice.offset), static_cast<std::int64_t>(slice.count))
            .to(at::kFloat);
    if (scale != 1) gradient = gradient / scale;
    const at::Tensor squares = gradient.square().sum();
    // A step that is not finite must not spoil the window; the device is not asked, so that nobody waits for it.
    if (engine_.exchange().watches_dense())
      gradient = at::where(at::isfinite(squares), gradient, at::zeros_like(gradient));
    Watched& watched = watched_[slice.tensor];
    if (!watched.sum.defined()) watched = {at::zeros_like(gradient), at::zeros_like(squares)};
    watched.sum.add_(gradient);
    if (track.squares) watched.squares.add_(squares);
  }
}

void OnDevice::reduce(const at::Tensor& buffer, PostedBucket posted,
                      c10::intrusive_ptr<c10::ivalue::Future> future, c10::IValue result) {
  watch(buffer, posted.slices);
  at::Tensor mean = buffer;
  mean.mul_(engine_.exchange().weight() / group_->getSize());
  const auto flag = std::make_shared<std::promise<FiniteFlag>>();
  const bool asked = engine_.exchange().watches_dense();
  std::vector<at::Tensor> tensors = {mean};
  group_->allreduce(tensors)->getFuture()->addCallback(
      [future = std::move(future), result = std::move(result), flag, asked, mean](c10::ivalue::Future& done) {
        bool told = false;  // The engine, which waits for it.
        try {
          if (done.hasError()) std::rethrow_exception(done.exception_ptr());
          flag->set_value(asked ? finite_flag(mean) : FiniteFlag());
          told = true;
          future->markCompleted(result, std::vector{mean.storage().getWeakStorageImpl()});
        } catch (...) {
          if (!told) flag->set_exception(std::current_exception());
          future->setErrorIfNeeded(std::current_exception());
        }
      });
  posted.elsewhere_bytes = mean.nbytes();
  posted.elsewhere = [flag] { return flag->get_future().get().wait(); };
  engine_.post(std::move(posted), [](const std::exception_ptr&) {});
}

void OnDevice::hand_over() {
  for (auto& [tensor, watched] : watched_) {
    const at::Tensor sum = watched.sum.cpu();
    engine_.exchange().add_to_window(static_cast<std::size_t>(tensor),
                                     {sum.data_ptr<float>(), static_cast<std::size_t>(sum.numel())},
                                     watched.squares.cpu().item<double>());
    watched.sum.zero_();
    watched.squares.zero_();
  }
}

}  // namespace accordion
