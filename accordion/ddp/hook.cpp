#include "accordion/ddp/hook.h"

namespace accordion {

BucketHook::BucketHook(Engine& engine, const std::vector<at::Tensor>& parameters,
                       const std::vector<char>* used)
    : engine_(engine), used_(used) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    tensor_of_[parameters[i].unsafeGetTensorImpl()] = static_cast<int>(i);
}

c10::intrusive_ptr<c10::ivalue::Future> BucketHook::runHook(c10d::GradBucket& bucket) {
  const at::Tensor buffer = bucket.getBuffer();
  const auto count = static_cast<std::size_t>(buffer.numel());
  PostedBucket posted{.values = std::span<float>(), .slices = {}, .last = bucket.isLast()};
  if (buffer.scalar_type() == at::kFloat)
    posted.values = std::span(buffer.data_ptr<float>(), count);
  else
    posted.values = std::span(buffer.data_ptr<double>(), count);
  std::size_t offset = 0;
  for (const at::Tensor& parameter : bucket.getParameters()) {
    const int tensor = tensor_of_.at(parameter.unsafeGetTensorImpl());
    const auto length = static_cast<std::size_t>(parameter.numel());
    posted.slices.push_back({tensor, offset, length});
    if (used_) posted.used.push_back((*used_)[static_cast<std::size_t>(tensor)]);
    offset += length;
  }
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
  engine_.post(std::move(posted), [future, buffer](const std::exception_ptr& failure) {
    failure ? future->setError(failure) : future->markCompleted(buffer);
  });
  return future;
}

}  // namespace accordion
