#include "accordion/ddp/hook.h"

#include "accordion/base/error.h"

namespace accordion {
namespace {

// In host memory, contiguous, as a reducer's are.
Values values_of(const at::Tensor& buffer) {
  const auto count = static_cast<std::size_t>(buffer.numel());
  void* const data = buffer.data_ptr();
  switch (buffer.scalar_type()) {
    case at::kFloat:
      return std::span(static_cast<float*>(data), count);
    case at::kDouble:
      return std::span(static_cast<double*>(data), count);
    case at::kHalf:
      return std::span(static_cast<Half*>(data), count);
    case at::kBFloat16:
      return std::span(static_cast<Bfloat16*>(data), count);
    default:
      throw UsageError(std::string("a bucket of type ") + c10::toString(buffer.scalar_type()) +
                       ", expected Float, Double, Half or BFloat16");
  }
}

}  // namespace

void require_exchangeable(const std::string& name, const at::Tensor& parameter) {
  if (!parameter.device().is_cpu())
    throw UsageError("parameter " + name + " is on " + parameter.device().str() + ", expected the CPU");
  switch (parameter.scalar_type()) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kBFloat16:
      return;
    default:
      throw UsageError("parameter " + name + " is of type " + c10::toString(parameter.scalar_type()) +
                       ", expected Float, Double, Half or BFloat16");
  }
}

BucketHook::BucketHook(Engine& engine, const std::vector<at::Tensor>& parameters,
                       const std::vector<char>* used)
    : engine_(engine), used_(used) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    tensor_of_[parameters[i].unsafeGetTensorImpl()] = static_cast<int>(i);
}

void BucketHook::post(c10d::GradBucket& bucket, c10::intrusive_ptr<c10::ivalue::Future> future,
                      c10::IValue result) {
  const at::Tensor buffer = bucket.getBuffer();
  PostedBucket posted{.values = values_of(buffer), .slices = {}, .last = bucket.isLast()};
  std::size_t offset = 0;
  for (const at::Tensor& parameter : bucket.getParameters()) {
    const auto found = tensor_of_.find(parameter.unsafeGetTensorImpl());
    if (found == tensor_of_.end())
      throw UsageError(
          "a bucket with a parameter that was not there, or needed no gradient, when this was made; "
          "expected one model throughout");
    const auto length = static_cast<std::size_t>(parameter.numel());
    posted.slices.push_back({found->second, offset, length});
    if (used_) posted.used.push_back((*used_)[static_cast<std::size_t>(found->second)]);
    offset += length;
  }
  // The buffer lives as long as somebody may write to it.
  engine_.post(std::move(posted), [future = std::move(future), result = std::move(result),
                                   buffer](const std::exception_ptr& failure) {
    failure ? future->setError(failure) : future->markCompleted(result);
  });
}

c10::intrusive_ptr<c10::ivalue::Future> BucketHook::runHook(c10d::GradBucket& bucket) {
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
  post(bucket, future, bucket.getBuffer());
  return future;
}

}  // namespace accordion
