#include "accordion/ddp/late_device_testing.h"

#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/CPUFallback.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace accordion {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;

// Does what it is told in order.
class LateStream {
 public:
  LateStream() : thread_([this] { run(); }) { thread_.detach(); }  // As long as the process.

  void tell(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    ++told_;
    changed_.notify_all();
  }
  void synchronize() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&, told = told_] { return done_ >= told; });
  }
  bool idle() {
    const std::lock_guard lock(mutex_);
    return done_ == told_;
  }

 private:
  void run() {
    while (true) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !queue_.empty(); });
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      work();
      work = {};
      const std::lock_guard lock(mutex_);
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::uint64_t told_ = 0, done_ = 0;
  std::thread thread_;
};

// The default stream of a device is 0, as on other devices.
std::atomic<c10::StreamId> last_stream = 0;
thread_local c10::DeviceIndex current_device = 0;
thread_local std::array<c10::StreamId, kLateDevices> current_streams = {};
thread_local bool memory_is_full = false;  // Once.

LateStream& queue_of(const c10::Stream& which) {
  static std::mutex mutex;
  static std::map<std::pair<int, c10::StreamId>, LateStream*> streams;
  const std::lock_guard lock(mutex);
  LateStream*& found = streams[{which.device_index(), which.id()}];
  if (!found) found = new LateStream;
  return *found;
}

class LateEvent {
 public:
  std::uint64_t next() {
    const std::lock_guard lock(mutex_);
    return ++version_;
  }
  void come(std::uint64_t version) {
    const std::lock_guard lock(mutex_);
    done_ = std::max(done_, version);
    changed_.notify_all();
  }
  std::uint64_t version() {
    const std::lock_guard lock(mutex_);
    return version_;
  }
  bool has_come() {
    const std::lock_guard lock(mutex_);
    return done_ == version_;
  }
  void wait(std::uint64_t version) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= version; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t version_ = 0, done_ = 0;
};
using EventPtr = std::shared_ptr<LateEvent>;

struct LateGuard final : c10::impl::DeviceGuardImplInterface {
  static c10::Stream current(c10::Device device) {
    return c10::Stream(c10::Stream::UNSAFE, device,
                       current_streams[static_cast<std::size_t>(device.index())]);
  }

  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device next) const override {
    return late_device(std::exchange(current_device, next.index()));
  }
  c10::Device getDevice() const override { return late_device(current_device); }
  void setDevice(c10::Device next) const override { current_device = next.index(); }
  void uncheckedSetDevice(c10::Device next) const noexcept override { current_device = next.index(); }
  c10::DeviceIndex deviceCount() const noexcept override { return kLateDevices; }
  c10::Stream getStream(c10::Device device) const noexcept override { return current(device); }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, 0);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, ++last_stream);
  }
  c10::Stream exchangeStream(c10::Stream next) const noexcept override {
    const c10::Stream before = current(next.device());
    current_streams[static_cast<std::size_t>(next.device_index())] = next.id();
    return before;
  }
  bool queryStream(const c10::Stream& which) const override { return queue_of(which).idle(); }
  void synchronizeStream(const c10::Stream& which) const override { queue_of(which).synchronize(); }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}

  void record(void** event, const c10::Stream& which, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (!*event) *event = new EventPtr(std::make_shared<LateEvent>());
    const EventPtr& late = *static_cast<EventPtr*>(*event);
    queue_of(which).tell([late, version = late->next()] { late->come(version); });
  }
  void block(void* event, const c10::Stream& which) const override {
    if (!event) return;
    const EventPtr& late = *static_cast<EventPtr*>(event);
    queue_of(which).tell([late, version = late->version()] { late->wait(version); });
  }
  bool queryEvent(void* event) const override {
    return !event || (*static_cast<EventPtr*>(event))->has_come();
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<EventPtr*>(event);
  }
};

struct LateAllocator final : c10::Allocator {
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(std::size_t bytes) override {
#else
  c10::DataPtr allocate(std::size_t bytes) const override {
#endif
    if (std::exchange(memory_is_full, false)) throw std::runtime_error("no memory on the late device");
    void* const data = std::malloc(std::max<std::size_t>(bytes, 1));
    return {data, data, &std::free, late_device(current_device)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &std::free;
  }
#if TORCH_VERSION_MAJOR >= 2
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
#endif
};

LateAllocator allocator;
const c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

// The same memory, as the CPU sees it.
at::Tensor host_view(const at::Tensor& tensor) {
  if (tensor.device().is_cpu()) return tensor;
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       tensor.options().device(at::kCPU));
}

at::Tensor empty(at::IntArrayRef size, c10::optional<at::ScalarType> dtype, c10::optional<at::Layout>,
                 c10::optional<at::Device> device, c10::optional<bool>,
                 c10::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(size, &allocator, kKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, c10::optional<at::ScalarType> dtype,
                         c10::optional<at::Layout>, c10::optional<at::Device> device, c10::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(size, stride, &allocator, kKeys, c10::dtype_or_default(dtype));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  LateStream& current = queue_of(LateGuard::current(from.device().is_cpu() ? to.device() : from.device()));
  // Both stay alive until it is done.
  const bool waits = !non_blocking && (from.device().is_cpu() || to.device().is_cpu());
  current.tell([from, to, waits] {
    if (!waits) std::this_thread::sleep_for(kLate);
    const at::NoGradGuard no_grad;
    const at::AutoDispatchBelowADInplaceOrView below;
    host_view(to).copy_(host_view(from));
  });
  if (waits) current.synchronize();  // Copies on the device never hold up the host.
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) at::native::resize_(to, from.sizes());
  return copy_from(from, to, false);
}

at::Tensor view(const at::Tensor& self, at::IntArrayRef size) {
  return at::native::view(self, size);
}
at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                      c10::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}
at::Tensor reshape_alias(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::_reshape_alias(self, size, stride);
}

void on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  queue_of(LateGuard::current(late_device(current_device))).synchronize();
  at::native::cpu_fallback(op, stack);
}

// Before autograd starts its threads, a device each.
const bool registered = [] {
  static const LateGuard guard;
  c10::impl::device_guard_impl_registry[static_cast<std::size_t>(kType)].store(&guard);
  c10::SetAllocator(kType, &allocator);
  return true;
}();

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("view", view);
  m.impl("as_strided", as_strided);
  m.impl("_reshape_alias", reshape_alias);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

// Collectives, which nobody differentiates, pass autograd by.
TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

class LateWork final : public c10d::Work {
 public:
  explicit LateWork(c10::intrusive_ptr<c10::ivalue::Future> future) : future_(std::move(future)) {}
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  bool wait(std::chrono::milliseconds) override {
    future_->wait();
    return true;
  }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace

void refuse_late_memory_once() {
  memory_is_full = true;
}

c10::Stream late_stream(c10::Device device) {
  return LateGuard().getStreamFromGlobalPool(device, false);
}

c10::intrusive_ptr<c10d::Work> late_work(const std::vector<at::Tensor>& tensors, const c10::Stream& stream,
                                         std::function<void(std::vector<at::Tensor>& host)> work) {
  c10::Event ready(kType);
  ready.record(LateGuard::current(stream.device()));
  ready.block(stream);
  // The tensors stay alive until it is done.
  queue_of(stream).tell([tensors, work = std::move(work)] {
    std::this_thread::sleep_for(kLate);
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> host;
    for (const at::Tensor& tensor : tensors) host.push_back(host_view(tensor));
    work(host);
  });
  auto future =
      c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors(), std::vector{stream.device()});
  const c10::StreamGuard guard(stream);
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages;
  for (const at::Tensor& tensor : tensors) storages.push_back(tensor.storage().getWeakStorageImpl());
  future->markCompleted(c10::IValue(tensors), std::move(storages));
  return c10::make_intrusive<LateWork>(std::move(future));
}

}  // namespace accordion
