#include "accordion/ddp/staging.h"

#include <ATen/Functions.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace accordion {
namespace {

c10::Stream new_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

}  // namespace

at::Tensor host_memory(const at::Tensor& like) {
  const auto options = like.options().device(at::kCPU);
  if (like.device().is_cuda()) return at::empty(like.sizes(), options.pinned_memory(true));
  return at::empty(like.sizes(), options);
}

// The generic event of torch 1.13 cannot be waited for by the host, so it is asked.
void wait_for(const c10::Event& event) {
  while (!event.query()) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

Staging::Staged::Staged(const at::Tensor& like)
    : host(host_memory(like)), arrived(like.device().type()), left(like.device().type()) {}

Staging::Staging(c10::Device device) : device_(device), in_(new_stream(device)), out_(new_stream(device)) {}

std::shared_ptr<Staging::Staged> Staging::room_for(const at::Tensor& buffer) {
  const std::lock_guard lock(mutex_);
  const auto fits = std::find_if(free_.begin(), free_.end(), [&](const std::shared_ptr<Staged>& staged) {
    return staged->host.numel() == buffer.numel() && staged->host.scalar_type() == buffer.scalar_type();
  });
  if (fits == free_.end()) return std::make_shared<Staged>(buffer);
  auto staged = std::move(*fits);
  free_.erase(fits);
  return staged;
}

std::shared_ptr<Staging::Staged> Staging::fetch(const at::Tensor& buffer) {
  auto staged = room_for(buffer);
  staged->left.block(in_);  // Of the step before, as a rule long gone.
  c10::Event ready(device_.type());
  ready.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  ready.block(in_);
  const c10::StreamGuard guard(in_);
  staged->host.copy_(buffer, /*non_blocking=*/true);
  staged->arrived.record(in_);
  return staged;
}

void Staging::give_back(const std::shared_ptr<Staged>& staged, at::Tensor buffer,
                        const std::function<void()>& then) {
  {
    const c10::StreamGuard guard(out_);
    buffer.copy_(staged->host, /*non_blocking=*/true);
    staged->left.record(out_);
    then();
  }
  const std::lock_guard lock(mutex_);
  free_.push_back(staged);
}

}  // namespace accordion
