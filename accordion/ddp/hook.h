// The reducer's hook: hands each full bucket to the engine and gives the reducer a future for it.
#pragma once

#include <torch/csrc/distributed/c10d/comm.hpp>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "accordion/ddp/on_device.h"
#include "accordion/ddp/staging.h"
#include "accordion/engine/engine.h"

namespace accordion {

// Throws UsageError for a parameter whose gradients cannot be exchanged. They may be on any device that torch knows streams of.
void require_exchangeable(const std::string& name, const at::Tensor& parameter);

// What a future of a bucket is to know of its device.
std::vector<c10::Device> devices_of(const at::Tensor& buffer);

class BucketHook final : public c10d::CommHookInterface {
 public:
  // `parameters` in the order of the engine's tensors. `used`, where given: whether each has got a gradient by
  // the time its bucket is full. `on_device`, where given: reduces buckets of a device while they go dense; all others are
  // exchanged in host memory.
  BucketHook(Engine& engine, const std::vector<at::Tensor>& parameters, const std::vector<char>* used,
             c10::intrusive_ptr<c10d::ProcessGroup> on_device = {});

  // The future gives the bucket back holding the mean, or the error.
  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override;
  at::Tensor parseHookResult(const c10::IValue& result) override { return result.toTensor(); }

  // The same with a future of the caller's, and what it is to give: the bucket's buffer in some form.
  void post(c10d::GradBucket& bucket, c10::intrusive_ptr<c10::ivalue::Future> future, c10::IValue result);

 private:
  void post_staged(const at::Tensor& buffer, PostedBucket posted,
                   c10::intrusive_ptr<c10::ivalue::Future> future, c10::IValue result);

  Engine& engine_;
  std::unordered_map<const c10::TensorImpl*, int> tensor_of_;
  const std::vector<char>* used_;
  OnDevice on_device_;
  std::unordered_map<c10::Device, std::shared_ptr<Staging>> staging_;  // Buckets on their way keep theirs.
};

}  // namespace accordion
