// A model that computes on a device: when its work is done by the host's clock, and how fast gradients come from there and go
// back. Only c10's generic streams and events are used, as in ddp/staging.h.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/perf/profile.h"

namespace accordion::bench {

// "cpu", "cuda:1", or "cuda", which is the one of this rank among those of its host. Throws UsageError for what torch does not
// have here.
c10::Device device_of(const std::string& name, int local_rank = 0);

// Calls back when what the device has been told by then is done, from a thread of its own, in order; on the host, at once.
class DoneOnDevice {
 public:
  explicit DoneOnDevice(c10::Device device);
  ~DoneOnDevice();
  DoneOnDevice(const DoneOnDevice&) = delete;
  DoneOnDevice& operator=(const DoneOnDevice&) = delete;

  // May be called by any thread; counts what that one's current stream has been told.
  void then(std::function<void()> call);
  // Returns when all of it is done and all calls have been made.
  void wait();

 private:
  struct Marked;
  void watch();

  c10::Device device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Marked>> marked_;
  bool stop_ = false;
  std::thread thread_;
};

// Called by all ranks, which copy at the same time, as in training: the model's buckets, by the way that they take there. The
// slowest rank's, medians.
perf::DeviceProfile measure_copies(Communicator& control, c10::Device device,
                                   const std::vector<perf::BucketProfile>& buckets, double seconds);

}  // namespace accordion::bench
