#include "bench/calibrate_device.h"

#include <ATen/Functions.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <span>

#include "accordion/base/error.h"
#include "accordion/base/median.h"
#include "accordion/ddp/staging.h"
#include "bench/digits.h"

namespace accordion::bench {
namespace {

constexpr int kFewestCopies = 5, kMostCopies = 200;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A copy that loses something is not worth timing.
void require_copies(Staging& staging, at::Tensor& buffer) {
  buffer.fill_(1);
  const auto staged = staging.fetch(buffer);
  wait_for(staged->arrived);
  const bool came = staged->host.eq(1).all().item<bool>();
  staged->host.fill_(2);
  staging.give_back(staged, buffer, [] {});
  wait_for(staged->left);
  if (!came || !buffer.cpu().eq(2).all().item<bool>())
    throw Error("calibrate: " + buffer.device().str() + " does not give back what was copied there");
}

}  // namespace

c10::Device device_of(const std::string& name, int local_rank) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError("calibrate: device=" + name + ": " + why +
                     ", expected cpu, or cuda or cuda:N where torch has it");
  };
  c10::Device device(c10::kCPU);
  try {
    device = c10::Device(name);
  } catch (const c10::Error&) {
    refuse("torch knows no such device");
  }
  if (device.is_cpu()) return c10::kCPU;
  const int here = c10::impl::hasDeviceGuardImpl(device.type())
                       ? c10::impl::VirtualGuardImpl(device.type()).deviceCount()
                       : 0;
  if (here == 0) refuse("there is none here");
  if (device.has_index() && device.index() >= here) refuse("there are " + std::to_string(here) + " here");
  if (!device.has_index()) device.set_index(static_cast<c10::DeviceIndex>(local_rank % here));
  return device;
}

struct DoneOnDevice::Marked {
  c10::Event event;
  std::function<void()> call;
};

DoneOnDevice::DoneOnDevice(c10::Device device) : device_(device) {
  if (!device_.is_cpu()) thread_ = std::thread([this] { watch(); });
}

DoneOnDevice::~DoneOnDevice() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void DoneOnDevice::then(std::function<void()> call) {
  if (device_.is_cpu()) return call();
  auto marked = std::make_shared<Marked>(Marked{c10::Event(device_.type()), std::move(call)});
  marked->event.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  {
    const std::lock_guard lock(mutex_);
    marked_.push_back(std::move(marked));
  }
  changed_.notify_all();
}

void DoneOnDevice::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return marked_.empty(); });
}

void DoneOnDevice::watch() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !marked_.empty(); });
    if (marked_.empty()) return;
    const auto marked = marked_.front();
    lock.unlock();
    wait_for(marked->event);
    marked->call();
    lock.lock();
    marked_.pop_front();
    changed_.notify_all();
  }
}

perf::DeviceProfile measure_copies(Communicator& control, c10::Device device,
                                   const std::vector<perf::BucketProfile>& buckets, double seconds) {
  Staging staging(device);
  std::vector<at::Tensor> buffers;
  double bytes = 0;
  for (const perf::BucketProfile& bucket : buckets) {
    buffers.push_back(at::empty({bucket.elements}, at::TensorOptions(device).dtype(at::kFloat)));
    bytes += static_cast<double>(buffers.back().nbytes());
    require_copies(staging, buffers.back());
  }
  std::vector<double> to_host, to_device;
  double spent = 0;
  while (to_host.size() < kFewestCopies || (spent < seconds && to_host.size() < kMostCopies)) {
    std::int8_t here = 0;
    control.sum(std::span(&here, 1));
    double times[2] = {0, 0};
    for (const at::Tensor& buffer : buffers) {
      const auto begin = std::chrono::steady_clock::now();
      const auto staged = staging.fetch(buffer);
      wait_for(staged->arrived);
      times[0] += seconds_since(begin);
      const auto back = std::chrono::steady_clock::now();
      staging.give_back(staged, buffer, [] {});
      wait_for(staged->left);
      times[1] += seconds_since(back);
    }
    control.max(std::span<double>(times));  // The same on all ranks from here, so they stop together.
    to_host.push_back(times[0]);
    to_device.push_back(times[1]);
    spent += times[0] + times[1];
  }
  const auto gbps = [&](const std::vector<double>& times) {
    return digits(8e-9 * bytes / median_of(times).value);
  };
  return {.to_host_gbps = gbps(to_host), .to_device_gbps = gbps(to_device)};
}

}  // namespace accordion::bench
