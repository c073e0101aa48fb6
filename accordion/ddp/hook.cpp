#include "accordion/ddp/hook.h"

namespace accordion {

BucketHook::BucketHook(CommunicationThread& thread, const std::vector<at::Tensor>& parameters)
    : thread_(thread) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    tensor_of_[parameters[i].unsafeGetTensorImpl()] = static_cast<int>(i);
}

c10::intrusive_ptr<c10::ivalue::Future> BucketHook::runHook(c10d::GradBucket& bucket) {
  std::vector<Slice> slices;
  std::size_t offset = 0;
  for (const at::Tensor& parameter : bucket.getParameters()) {
    const auto count = static_cast<std::size_t>(parameter.numel());
    slices.push_back({tensor_of_.at(parameter.unsafeGetTensorImpl()), offset, count});
    offset += count;
  }
  return thread_.post(bucket.getBuffer(), std::move(slices), bucket.isLast());
}

}  // namespace accordion
