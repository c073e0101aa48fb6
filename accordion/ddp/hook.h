// The reducer's hook: hands each full bucket to the communication thread and gives the reducer its future.
#pragma once

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <unordered_map>

#include "accordion/ddp/communication_thread.h"

namespace accordion {

class BucketHook final : public c10d::CommHookInterface {
 public:
  // `parameters` in the order of the exchange's tensors.
  BucketHook(CommunicationThread& thread, const std::vector<at::Tensor>& parameters);

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override;
  at::Tensor parseHookResult(const c10::IValue& result) override { return result.toTensor(); }

 private:
  CommunicationThread& thread_;
  std::unordered_map<const c10::TensorImpl*, int> tensor_of_;
};

}  // namespace accordion
