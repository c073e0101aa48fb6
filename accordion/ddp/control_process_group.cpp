#include "accordion/ddp/control_process_group.h"

#include <ATen/core/Tensor.h>

#include <functional>

#include "accordion/base/error.h"

namespace accordion {
namespace {

// Everything here has happened by the time it is returned.
struct Done final : c10d::Work {
  Done() { finish(); }
};

// Contiguous, as the reducer's own tensors are.
const at::Tensor& only(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() != 1 || !tensors[0].is_contiguous())
    throw Error("control traffic of the reducer: " + std::to_string(tensors.size()) +
                " tensors, expected one that is contiguous");
  return tensors[0];
}

// The reducer of a module on a device keeps its own tensors there too; they are small and rare.
void in_host_memory(const at::Tensor& tensor, const std::function<void(const at::Tensor&)>& body) {
  const at::Tensor host = tensor.cpu();
  body(host);
  if (!host.is_same(tensor)) tensor.copy_(host);
}

}  // namespace

ControlProcessGroup::ControlProcessGroup(Communicator& control)
    : c10d::ProcessGroup(control.rank(), control.size()), control_(control) {}

c10::intrusive_ptr<c10d::Work> ControlProcessGroup::broadcast(std::vector<at::Tensor>& tensors,
                                                              const c10d::BroadcastOptions& options) {
  in_host_memory(only(tensors), [&](const at::Tensor& tensor) {
    control_.broadcast({static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()},
                       static_cast<int>(options.rootRank));
  });
  return c10::make_intrusive<Done>();
}

c10::intrusive_ptr<c10d::Work> ControlProcessGroup::allreduce(std::vector<at::Tensor>& tensors,
                                                              const c10d::AllreduceOptions& options) {
  const at::Tensor& tensor = only(tensors);
  if (options.reduceOp != c10d::ReduceOp::SUM || tensor.scalar_type() != at::kInt)
    throw Error(std::string("control traffic of the reducer: a reduction of ") +
                c10::toString(tensor.scalar_type()) + ", expected a sum of Int");
  in_host_memory(tensor, [&](const at::Tensor& host) {
    control_.sum(std::span(host.data_ptr<std::int32_t>(), static_cast<std::size_t>(host.numel())));
  });
  return c10::make_intrusive<Done>();
}

}  // namespace accordion
