// Buckets on a device that go dense at the moment: reduced where they lie, by a process group that reduces there, on the thread
// that calls, as DDP itself would. What the controller watches is added up there too.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Event.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <map>
#include <vector>

#include "accordion/engine/engine.h"

namespace accordion {

class OnDevice {
 public:
  // Without a group, no bucket stays on the device. The engine is used no longer than this lives.
  OnDevice(Engine& engine, c10::intrusive_ptr<c10d::ProcessGroup> group);
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  // The same on every rank: whether all of the bucket's tensors go dense and nobody needs them in host memory.
  bool takes(const std::vector<Slice>& slices) const;

  // The future gives `result` when the buffer holds the mean. `posted` is what the engine is told.
  void reduce(const at::Tensor& buffer, PostedBucket posted, c10::intrusive_ptr<c10::ivalue::Future> future,
              c10::IValue result);

 private:
  struct Watched {
    at::Tensor sum, squares;
  };
  void watch(const at::Tensor& buffer, const std::vector<Slice>& slices);
  void hand_over();

  Engine& engine_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::map<int, Watched> watched_;  // By tensor; rank 0's.
};

}  // namespace accordion
