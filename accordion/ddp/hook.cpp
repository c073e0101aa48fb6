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
  if (parameter.device().is_meta())
    throw UsageError("parameter " + name + " is on " + parameter.device().str() +
                     ", expected memory that holds values");
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
                       const std::vector<char>* used, c10::intrusive_ptr<c10d::ProcessGroup> on_device)
    : engine_(engine), used_(used), on_device_(engine, std::move(on_device)) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    tensor_of_[parameters[i].unsafeGetTensorImpl()] = static_cast<int>(i);
}

std::vector<c10::Device> devices_of(const at::Tensor& buffer) {
  if (buffer.device().is_cpu()) return {};
  return {buffer.device()};
}

void BucketHook::post(c10d::GradBucket& bucket, c10::intrusive_ptr<c10::ivalue::Future> future,
                      c10::IValue result) {
  const at::Tensor buffer = bucket.getBuffer();
  // A guard changes levels when a step has ended, which one that was reduced on the device need not have when the next begins.
  if (engine_.guard() && bucket.getIndex() == 0 && !buffer.device().is_cpu()) engine_.settle();
  PostedBucket posted{.values = std::span<float>(), .slices = {}, .last = bucket.isLast()};
  std::size_t offset = 0;
  for (const at::Tensor& parameter : bucket.getParameters()) {
    const auto found = tensor_of_.find(parameter.unsafeGetTensorImpl());
    if (found == tensor_of_.end())
      throw UsageError(
          "a bucket with a parameter that was not there, or needed no gradient, when this was made; "
          "expected one model throughout");
    const auto length = static_cast<std::size_t>(parameter.numel());
    posted.slices.push_back({found->second, offset, length});
    offset += length;
  }
  if (!buffer.device().is_cpu() && on_device_.takes(posted.slices))
    return on_device_.reduce(buffer, std::move(posted), std::move(future), std::move(result));
  if (used_)
    for (const Slice& slice : posted.slices)
      posted.used.push_back((*used_)[static_cast<std::size_t>(slice.tensor)]);
  if (!buffer.device().is_cpu())
    return post_staged(buffer, std::move(posted), std::move(future), std::move(result));
  posted.values = values_of(buffer);
  // The buffer lives as long as somebody may write to it.
  engine_.post(std::move(posted), [future = std::move(future), result = std::move(result),
                                   buffer](const std::exception_ptr& failure) {
    failure ? future->setError(failure) : future->markCompleted(result);
  });
}

void BucketHook::post_staged(const at::Tensor& buffer, PostedBucket posted,
                             c10::intrusive_ptr<c10::ivalue::Future> future, c10::IValue result) {
  std::shared_ptr<Staging>& staging = staging_[buffer.device()];
  if (!staging) staging = std::make_shared<Staging>(buffer.device());
  const auto staged = staging->fetch(buffer);
  posted.values = values_of(staged->host);
  posted.arrive = [staged] { wait_for(staged->arrived); };
  engine_.post(std::move(posted), [future = std::move(future), result = std::move(result), buffer, staged,
                                   staging](const std::exception_ptr& failure) {
    if (failure) return future->setError(failure);
    try {
      staging->give_back(staged, buffer, [&] {
        future->markCompleted(result, std::vector{buffer.storage().getWeakStorageImpl()});
      });
    } catch (...) {
      future->setErrorIfNeeded(std::current_exception());
    }
  });
}

c10::intrusive_ptr<c10::ivalue::Future> BucketHook::runHook(c10d::GradBucket& bucket) {
  auto future =
      c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get(), devices_of(bucket.getBuffer()));
  post(bucket, future, bucket.getBuffer());
  return future;
}

}  // namespace accordion
